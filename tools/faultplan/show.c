/* `faultplan show`: the plans of a plan file. */
#include "faultplan/faultplan.h"
#include "faultplan/live.h"
#include "faultplan/plans.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FL_EXIT_BAD_FILE = 1, PAGE = 4096 };

struct options {
    const char *path;
    bool slots;
};

static const char *const kind_name[] = {"planned", "crossing", "doubled", "kept"};

enum { KINDS = sizeof kind_name / sizeof kind_name[0] };

static const char doc[] =
    "Print the plans of PLAN, a file that FAULTLESS_PLAN named: whose they are, their slots, and "
    "how high they are.\v"
    "Exit status 1: PLAN is no plan file, or not whole; 125: a wrong option.";

static const struct argp_option option[] = {
    {"slots", 's', NULL, 0, "Print each slot, too", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;

    switch (key) {
    case 's':
        o->slots = true;
        return 0;
    default:
        return fl_table_parse_path(key, arg, state, &o->path);
    }
}

struct figures {
    size_t of_kind[KINDS];
    uint64_t bound;
    bool overlap;
};

/* In whole granules, as the planner looks at it before it believes in a plan. */
static bool look_for_overlaps(const struct fl_file_plan *p, struct figures *out)
{
    struct fl_table t;

    if (!fl_plans_table(p->slot, p->n, p->granule, &t)) {
        return false;
    }
    size_t scratch_len = fl_align_up(fl_pack_scratch(t.n), PAGE);
    void *scratch = aligned_alloc(PAGE, scratch_len);
    if (scratch != NULL) {
        out->overlap = !fl_pack_is_valid(t.buffer, t.n, p->height, scratch, scratch_len);
    } else {
        fprintf(stderr, "faultplan: %s\n", strerror(ENOMEM));
    }
    fl_table_free(&t);
    free(scratch);
    return scratch != NULL;
}

static bool work_out(const struct fl_file_plan *p, struct figures *out)
{
    struct fl_table t;

    *out = (struct figures){0};
    for (size_t i = 0; i < p->n; i++) {
        out->of_kind[p->slot[i].kind]++;
    }
    if (!fl_plans_table(p->slot, p->n, 1, &t)) {
        return false;
    }
    bool is_good = fl_live_bound(&t, &out->bound);
    if (!is_good) {
        fprintf(stderr, "faultplan: %s\n", strerror(ENOMEM));
    }
    fl_table_free(&t);
    return is_good && look_for_overlaps(p, out);
}

static void print_figures(const struct fl_file_plan *p, const struct figures *f)
{
    double ratio = f->bound == 0 ? 1 : (double)p->height / (double)f->bound;

    printf("key           %016llx\n", (unsigned long long)p->key);
    printf("signature     %016llx\n", (unsigned long long)p->signature);
    printf("slots         %llu\n", (unsigned long long)p->n);
    for (int k = 0; k < KINDS; k++) {
        printf("  %-11s %zu\n", kind_name[k], f->of_kind[k]);
    }
    printf("horizon       %llu\n", (unsigned long long)p->horizon);
    printf("granule       %llu\n", (unsigned long long)p->granule);
    printf("height        %llu\n", (unsigned long long)p->height);
    printf("lower bound   %llu\n", (unsigned long long)f->bound);
    printf("ratio         %.5f\n", ratio);
    if (f->overlap) {
        printf("overlaps      slots that live at once: no program will use this plan\n");
    }
}

static void print_offset(uint64_t offset)
{
    if (offset == FL_PACK_NONE) {
        printf(" %15s", "-");
    } else {
        printf(" %15llu", (unsigned long long)offset);
    }
}

static void print_slots(const struct fl_file_plan *p)
{
    printf("\n%6s %-8s %4s %8s %8s %13s %13s %13s %7s %15s %15s\n", "number", "kind", "zone",
           "birth", "death", "size", "least", "most", "align", "offset", "second");
    for (const struct fl_slot *s = p->slot; s < p->slot + p->n; s++) {
        printf("%6lu %-8s %4lu %8llu %8llu %13llu %13llu %13llu %7llu",
               (unsigned long)(s - p->slot), kind_name[s->kind], (unsigned long)s->zone,
               (unsigned long long)s->birth, (unsigned long long)s->death,
               (unsigned long long)s->size, (unsigned long long)s->least,
               (unsigned long long)s->most, (unsigned long long)s->align);
        print_offset(s->offset[0]);
        print_offset(s->offset[1]);
        putchar('\n');
    }
}

static bool show(const void *file, bool with_slots)
{
    struct fl_file_plan p;
    struct figures figures;
    bool is_good = true;
    unsigned n = 0;

    for (size_t at = 0; is_good && fl_file_next(file, &at, &p) == 0;) {
        is_good = work_out(&p, &figures);
        if (is_good) {
            printf("%splan          %u\n", n == 0 ? "" : "\n", n + 1);
            print_figures(&p, &figures);
            n++;
        }
        if (is_good && with_slots) {
            print_slots(&p);
        }
    }
    if (is_good && n == 0) {
        puts("no plan");
    }
    return is_good;
}

int fl_plan_show_main(int argc, char **argv)
{
    struct options o = {0};
    struct argp argp = {option, parse, "PLAN", doc, NULL, NULL, NULL};

    argp_parse(&argp, argc, argv, 0, NULL, &o);
    void *file = fl_plans_read(o.path);
    if (file == NULL) {
        return FL_EXIT_BAD_FILE;
    }
    bool is_good = show(file, o.slots);
    free(file);
    if (is_good && fflush(stdout) != 0) {
        fprintf(stderr, "faultplan: standard output: %s\n", strerror(errno));
        is_good = false;
    }
    return is_good ? 0 : FL_EXIT_OWN;
}
