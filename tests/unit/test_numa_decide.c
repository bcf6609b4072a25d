/* The decision, as a table: what was said, the machine, who asks for how much, and where it lies.
 * The same rows stand in docs/internals/numa.md, which this test reads;
 * `test_numa_decide --table` prints them. */
#include "cases.h"
#include "unit/fake_sys.h"
#include "unit/numa_fixture.h"

#include <numaif.h>
#include <stdio.h>
#include <string.h>

enum { BY_KERNEL, BY_US, IN_PIECES };

static const struct row {
    const char
        *said; /* as numactl(8) has it; what follows in parentheses is not an option of its */
    const struct drawn_machine *machine;
    enum fl_policy_mode policy;
    const char *policy_nodes, *allowed, *cpus; /* lists of ids; NULL: all */
    enum fl_numa choice;
    const char *choice_nodes;
    int asks; /* id of the node that the thread runs on; -1: not known */
    unsigned mib;
    int touch;
    const char *lies;
} table[] = {
#include "unit/numa_rows.def"
};

enum { ROWS = sizeof table / sizeof table[0] };

/* By enum fl_numa. */
static const char *const choice_words[] = {"auto",       "off",  "first-touch", "local",
                                           "interleave", "bind", "balance"};

static struct fl_topology t;

static uint64_t set_or(const char *list, uint64_t otherwise)
{
    return list != NULL ? set_of(&t, list) : otherwise;
}

static struct fl_numa_view view_of(const struct row *r)
{
    draw_and_read(r->machine, &t);
    return (struct fl_numa_view){
        .topology = &t,
        .choice = {r->choice, set_or(r->choice_nodes, 0)},
        .policy = {r->policy, set_or(r->policy_nodes, 0)},
        .allowed = set_or(r->allowed, t.memory),
        .cpus = set_or(r->cpus, t.cpus),
        .huge = (size_t)2 << 20,
    };
}

static void say_id(struct fl_text *out, const char *before, unsigned node)
{
    assert_true(node < t.count);
    fl_text_str(out, before);
    fl_text_u64(out, t.id[node]);
}

static void say_order(struct fl_text *out, const struct fl_placement *p)
{
    uint64_t full = 0;
    unsigned node, n = 0;

    while ((node = fl_placement_node(&t, p, 0, FL_NODES, full)) != FL_NODES) {
        say_id(out, n == 0 ? "" : n == 1 ? ", then " : " ", node);
        full |= (uint64_t)1 << node;
        n++;
    }
    assert_true(full == p->nodes);
}

static void say_turns(struct fl_text *out, const struct fl_placement *p)
{
    uint64_t seen = 0;
    unsigned round = 0;

    fl_text_str(out, p->from_start ? "pieces:" : "in turn:");
    for (uint64_t set = p->prefer; set != 0; set &= set - 1) {
        round += p->weighted ? t.weight[__builtin_ctzll(set)] : 1;
    }
    for (unsigned i = 0; i < round; i++) {
        unsigned node = fl_placement_node(&t, p, i * p->chunk, FL_NODES, 0);
        say_id(out, " ", node);
        seen |= (uint64_t)1 << node;
        assert_int_equal(fl_placement_node(&t, p, (i + 1) * p->chunk - 1, 0, 0), node);
        assert_int_equal(fl_placement_node(&t, p, (i + 7 * round) * p->chunk, 0, 0), node);
    }
    assert_true(seen == p->prefer);
}

/* "0>0 1>1": touched from node 0 it is on node 0. */
static void say_touches(struct fl_text *out, const struct fl_placement *p)
{
    fl_text_str(out, p->served ? "touched, by us:" : "touched:");
    for (unsigned i = 0; i < t.count; i++) {
        if ((t.cpus >> i & 1) != 0) {
            say_id(out, " ", i);
            say_id(out, ">", fl_placement_node(&t, p, 0, i, 0));
        }
    }
}

static const char *lies(const struct row *r)
{
    static char text[256];
    struct fl_text out = fl_text_on(text, sizeof text);
    struct fl_numa_view v = view_of(r);
    struct fl_numa_request q = {
        .len = (size_t)r->mib << 20,
        .node = r->asks >= 0 ? fl_topology_find(&t, (unsigned)r->asks) : FL_NODES,
        .served = r->touch == BY_US,
    };
    struct fl_placement p;

    if (r->touch == IN_PIECES) {
        q.piece = (size_t)16 << 20;
        q.piece_nodes = t.cpus;
        q.piece_first = 1;
    }
    fl_numa_decide(&v, &q, &p);
    if (p.kind == FL_PLACE_ANYWHERE) {
        assert_int_equal(p.nodes, 0);
        return "anywhere";
    }
    assert_true(p.prefer != 0 && (p.prefer & ~p.nodes) == 0 && (p.nodes & ~t.memory) == 0);
    assert_true(p.strict || p.nodes == t.memory);
    if (p.kind == FL_PLACE_NODE) {
        say_order(&out, &p);
    } else if (p.kind == FL_PLACE_SPREAD) {
        assert_int_equal(p.chunk, p.from_start ? q.piece : v.huge);
        say_turns(&out, &p);
    } else {
        say_touches(&out, &p);
    }
    fl_text_str(&out, p.strict ? " only" : "");
    return text;
}

CASE(each_row_is_decided_so)
{
    for (size_t i = 0; i < ROWS; i++) {
        const char *text = lies(&table[i]);
        if (strcmp(text, table[i].lies) != 0) {
            fail_msg("row %zu, %s on %s: \"%s\", not \"%s\"", i, table[i].said,
                     table[i].machine->name, text, table[i].lies);
        }
    }
}

static const char *line_of(const struct row *r, char *line, size_t size)
{
    static const char *const touch[] = {"kernel", "us", "pieces known"};
    char asks[16] = "?";

    if (r->asks >= 0) {
        snprintf(asks, sizeof asks, "%d", r->asks);
    }
    snprintf(line, size, "| %s | %s | %s%s%s | %s | %u MiB | %s | %s |", r->said, r->machine->name,
             choice_words[r->choice], r->choice_nodes != NULL ? ":" : "",
             r->choice_nodes != NULL ? r->choice_nodes : "", asks, r->mib, touch[r->touch],
             r->lies);
    return line;
}

CASE(the_document_has_each_row)
{
    static char text[65536];
    char line[512];
    FILE *f = fopen(FL_NUMA_DOC, "re");
    size_t rows = 0;
    assert_non_null(f);
    size_t len = fread(text, 1, sizeof text - 1, f);
    text[len] = '\0';
    fclose(f);
    for (size_t i = 0; i < ROWS; i++) {
        if (strstr(text, line_of(&table[i], line, sizeof line)) == NULL) {
            fail_msg("%s lacks: %s", FL_NUMA_DOC, line);
        }
    }
    for (const char *at = text; (at = strstr(at, " MiB | ")) != NULL; at++) {
        rows++;
    }
    assert_int_equal(rows, ROWS);
}

/* A full node: the others in turn, as said; and where all are full, none. */
CASE(what_takes_turns_falls_over_to_the_nearest)
{
    struct fl_numa_view v;
    struct fl_numa_request q = {.len = (size_t)1 << 30, .node = 0};
    struct fl_placement p;
    draw_and_read(&drawn_four, &t);
    v = (struct fl_numa_view){.topology = &t,
                              .choice = {FL_NUMA_AUTO, 0},
                              .policy = {FL_POLICY_INTERLEAVE, 1 << 0 | 1 << 3},
                              .allowed = 15,
                              .cpus = 15,
                              .huge = (size_t)2 << 20};
    fl_numa_decide(&v, &q, &p);
    assert_int_equal(fl_placement_node(&t, &p, 0, 0, 0), 0);
    assert_int_equal(fl_placement_node(&t, &p, 0, 0, 1), 3);     /* of those named first */
    assert_int_equal(fl_placement_node(&t, &p, 0, 0, 1 | 8), 1); /* then by distance from its own */
    assert_int_equal(fl_placement_node(&t, &p, v.huge, 0, 1 | 8), 2);
    assert_int_equal(fl_placement_node(&t, &p, 0, 0, 15), FL_NODES);
    v.policy = (struct fl_policy){FL_POLICY_BIND, 1 << 0 | 1 << 3};
    fl_numa_decide(&v, &q, &p);
    assert_int_equal(p.kind, FL_PLACE_TOUCH);
    assert_int_equal(fl_placement_node(&t, &p, 0, 1, 1), 3); /* bound: never 2, which is nearer */
    assert_int_equal(fl_placement_node(&t, &p, 0, 1, 1 | 8), FL_NODES);
    assert_true(p.strict);
}

/* The policy that the window's maps have, by rows of their own. */
CASE(the_window_has_the_launchs_policy_made_explicit)
{
#define D(name) &drawn_##name
#define NONE FL_POLICY_DEFAULT, NULL
    static const struct {
        const struct drawn_machine *machine;
        enum fl_policy_mode policy;
        const char *policy_nodes, *allowed;
        enum fl_numa choice;
        const char *choice_nodes;
        int mode; /* -1: none */
        const char *nodes;
    } windows[] = {
        {D(one), NONE, NULL, FL_NUMA_AUTO, NULL, -1, NULL},
        {D(two), NONE, NULL, FL_NUMA_OFF, NULL, -1, NULL},
        {D(two), NONE, NULL, FL_NUMA_BALANCE, NULL, -1, NULL},
        {D(two), NONE, NULL, FL_NUMA_AUTO, NULL, MPOL_LOCAL, NULL},
        {D(two), FL_POLICY_LOCAL, NULL, NULL, FL_NUMA_AUTO, NULL, MPOL_LOCAL, NULL},
        {D(two), FL_POLICY_BIND, "1", NULL, FL_NUMA_AUTO, NULL, MPOL_BIND, "1"},
        {D(two), FL_POLICY_BIND, "1", "0", FL_NUMA_AUTO, NULL, MPOL_LOCAL, NULL},
        {D(two), FL_POLICY_PREFERRED, "1", NULL, FL_NUMA_AUTO, NULL, MPOL_PREFERRED, "1"},
        {D(four), FL_POLICY_PREFERRED_MANY, "1-2", NULL, FL_NUMA_AUTO, NULL, MPOL_PREFERRED_MANY,
         "1-2"},
        {D(gaps), FL_POLICY_INTERLEAVE, "0,5", NULL, FL_NUMA_AUTO, NULL, MPOL_INTERLEAVE, "0,5"},
        {D(two), FL_POLICY_WEIGHTED, "0-1", NULL, FL_NUMA_AUTO, NULL, 6, "0-1"},
        {D(gaps), NONE, NULL, FL_NUMA_BIND, "2,5", MPOL_BIND, "2,5"},
        {D(four), FL_POLICY_BIND, "0-1", NULL, FL_NUMA_BIND, "1-2", MPOL_BIND, "1"},
        {D(cxl), NONE, NULL, FL_NUMA_INTERLEAVE, NULL, MPOL_INTERLEAVE, "0-1"},
        {D(two), FL_POLICY_INTERLEAVE, "0-1", NULL, FL_NUMA_LOCAL, NULL, MPOL_LOCAL, NULL},
        {D(two), FL_POLICY_BIND, "0", NULL, FL_NUMA_FIRST_TOUCH, NULL, MPOL_BIND, "0"},
    };
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        const struct row r = {.machine = windows[i].machine,
                              .policy = windows[i].policy,
                              .policy_nodes = windows[i].policy_nodes,
                              .allowed = windows[i].allowed,
                              .choice = windows[i].choice,
                              .choice_nodes = windows[i].choice_nodes};
        struct fl_numa_view v = view_of(&r);
        struct fl_node_ids got = {{0}}, want = ids_of(windows[i].nodes);
        int mode = -2;
        assert_int_equal(fl_numa_window(&v, &mode, &got), windows[i].mode >= 0);
        if (windows[i].mode >= 0) {
            assert_int_equal(mode, windows[i].mode);
            assert_memory_equal(&got, &want, sizeof got);
        }
    }
}

int main(int argc, char **argv)
{
    char line[512];

    fake_install();
    if (argc > 1 && strcmp(argv[1], "--table") == 0) {
        for (size_t i = 0; i < ROWS; i++) {
            puts(line_of(&table[i], line, sizeof line));
        }
        return 0;
    }
    return RUN_CASES();
}
