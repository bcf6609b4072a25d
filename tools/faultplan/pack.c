/* `faultplan pack`: the buffers of a table get offsets. */
#include "faultplan/faultplan.h"
#include "faultplan/table.h"

#include <argp.h>
#include <stdio.h>

struct options {
    uint64_t align;
    const char *path, *output;
};

static const char doc[] =
    "Give the buffers of FILE, a table with the columns id,lower,upper,size (and alignment), "
    "offsets at which none "
    "that live at the same time overlap, and print how high that comes.\v"
    "Sizes take K, M, G and T. Exit status 125: a wrong option, or FILE is no such table.";

static const struct argp_option option[] = {
    {"align", 'a', "N", 0, "Offsets are multiples of N, a power of two (default 1)", 0},
    {"output", 'o', "FILE", 0, "Write the table with its offsets; '-': to standard output", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;

    switch (key) {
    case 'a':
        o->align = fl_table_parse_number(arg, state);
        if (!fl_is_pow2(o->align) || o->align > (uint64_t)1 << 47) {
            argp_error(state, "'%s' is no power of two up to 2^47", arg);
        }
        return 0;
    case 'o':
        o->output = arg;
        return 0;
    default:
        return fl_table_parse_path(key, arg, state, &o->path);
    }
}

static void report(const struct fl_table *t, const struct fl_packing *p, FILE *file)
{
    const struct fl_pack_result *r = &p->result;
    double ratio = r->bound == 0 ? 1 : (double)r->height / (double)r->bound;

    fprintf(file, "buffers       %zu\n", t->n);
    fprintf(file, "lower bound   %llu bytes, the most that lives at once\n",
            (unsigned long long)r->bound);
    fprintf(file, "height        %llu bytes\n", (unsigned long long)r->height);
    fprintf(file, "ratio         %.5f, height to lower bound\n", ratio);
    fprintf(file, "time          %.2f ms\n", p->ms);
}

int fl_plan_pack_main(int argc, char **argv)
{
    struct options o = {.align = 1};
    struct argp argp = {option, parse, "FILE", doc, fl_command_help, NULL, NULL};
    struct fl_packing packing;
    struct fl_table t;

    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (!fl_table_read(&t, o.path)) {
        return FL_EXIT_OWN;
    }
    for (size_t i = 0; i < t.n; i++) {
        t.buffer[i].align = fl_max(t.buffer[i].align, o.align);
    }
    bool is_good = fl_table_pack(&t, &packing);
    if (is_good) {
        bool takes_stdout = o.output != NULL && o.output[0] == '-' && o.output[1] == '\0';
        report(&t, &packing, takes_stdout ? stderr : stdout);
        is_good = o.output == NULL || fl_table_write(&t, o.output);
    }
    fl_table_free(&t);
    return is_good ? 0 : FL_EXIT_OWN;
}
