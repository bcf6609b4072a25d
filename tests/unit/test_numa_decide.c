/* The decision: docs/internals/numa.md is the table. What was said, the machine, who asks for how
 * much, and where it lies. */
#include "cases.h"
#include "unit/fake_sys.h"
#include "unit/numa_fixture.h"

#include <linux/mempolicy.h>

static struct fl_topology t;

/* What a launch said; sets of nodes. */
struct launch {
    struct fl_policy policy;
    uint64_t allowed, cpus;
    struct fl_numa_choice choice;
};

static uint64_t set_or(const char *list, uint64_t otherwise)
{
    return list != NULL ? set_of(&t, list) : otherwise;
}

static struct fl_numa_view view_of(const struct launch *l)
{
    return (struct fl_numa_view){.topology = &t,
                                 .choice = l->choice,
                                 .policy = l->policy,
                                 .allowed = l->allowed,
                                 .cpus = l->cpus,
                                 .huge = (size_t)2 << 20};
}

/* The nodes of the list behind `option` in what was said: of nodes with memory. False: it was not
 * said. */
static bool was_said(const char *said, const char *option, uint64_t *nodes)
{
    const char *at = strstr(said, option);
    char list[64] = "";

    if (at != NULL) {
        (void)sscanf(at + strlen(option), "%63[0-9a-z,-]", list);
        *nodes = strcmp(list, "all") == 0 ? t.memory : set_of(&t, list);
    }
    return at != NULL;
}

/* As --physcpubind has it. */
static uint64_t nodes_of_cpus(const struct drawn_machine *m, const char *said)
{
    const char *at = strstr(said, "--physcpubind=");
    uint64_t nodes = 0;

    for (unsigned i = 0; i < t.count; i++) {
        uint64_t cpus = ids_of(m->node[i].cpus).word[0];
        nodes |= at == NULL || (ids_of(strchr(at, '=') + 1).word[0] & cpus) != 0 ? 1ull << i : 0;
    }
    return nodes & t.cpus;
}

/* In the words of numactl(8); what stands in parentheses is no option of its, and comes later. */
static struct launch launch_of(const struct drawn_machine *m, const char *said)
{
    static const struct {
        const char *option;
        enum fl_policy_mode mode;
    } policy[] = {
        {"--membind=", FL_POLICY_BIND},
        {"--preferred=", FL_POLICY_PREFERRED},
        {"--preferred-many=", FL_POLICY_PREFERRED_MANY},
        {"--interleave=", FL_POLICY_INTERLEAVE},
        {"--weighted-interleave=", FL_POLICY_WEIGHTED},
        {"--localalloc", FL_POLICY_LOCAL},
        {"(thread: MPOL_BIND ", FL_POLICY_BIND},
        {"(thread: MPOL_PREFERRED ", FL_POLICY_PREFERRED},
        {"(thread: MPOL_DEFAULT", FL_POLICY_DEFAULT},
    };
    struct launch l = {.allowed = t.memory, .cpus = nodes_of_cpus(m, said)};

    for (size_t i = 0; i < sizeof policy / sizeof policy[0]; i++) {
        if (was_said(said, policy[i].option, &l.policy.nodes)) {
            l.policy.mode = policy[i].mode;
        }
    }
    (void)was_said(said, "--cpunodebind=", &l.cpus);
    (void)was_said(said, "(cpuset.mems=", &l.allowed);
    return l;
}

static struct fl_numa_choice choice_of(const char *word)
{
    static const char *const words[] = {"auto",       "off",  "first-touch", "local",
                                        "interleave", "bind", "balance"}; /* by enum fl_numa */
    const char *nodes = strchr(word, ':');

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i]) == strcspn(word, ":") &&
            strncmp(words[i], word, strlen(words[i])) == 0) {
            return (struct fl_numa_choice){(enum fl_numa)i,
                                           set_or(nodes != NULL ? nodes + 1 : NULL, 0)};
        }
    }
    fail_msg("no choice: %s", word);
    return (struct fl_numa_choice){FL_NUMA_AUTO, 0};
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

static const char *lies(const struct launch *l, struct fl_numa_request q)
{
    static char text[256];
    struct fl_text out = fl_text_on(text, sizeof text);
    struct fl_numa_view v = view_of(l);
    struct fl_placement p;

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

/* Of the document's table: what was said, the machine, FAULTLESS_NUMA, who asks, the block, how it
 * is touched, where it lies. */
enum { SAID, MACHINE, CHOICE, ASKS, BLOCK, TOUCHED, LIES, CELLS };

/* False: there is no row more. */
static bool next_row(char **document, char *cell[CELLS])
{
    char *line;

    while ((line = strsep(document, "\n")) != NULL && strstr(line, " MiB |") == NULL) {
    }
    for (size_t i = 0; line != NULL && i < CELLS; i++) {
        cell[i] = strchr(line, '|') + 2;
        line = strchr(cell[i], '|');
        assert_non_null(line);
        line[-1] = '\0'; /* a space */
    }
    return line != NULL;
}

static const struct drawn_machine *machine_of(const char *name)
{
    size_t i = 0;

    while (strcmp(drawn_all[i]->name, name) != 0) {
        assert_true(++i < sizeof drawn_all / sizeof drawn_all[0]);
    }
    return drawn_all[i];
}

static void check_row(char *cell[CELLS])
{
    const struct drawn_machine *m = machine_of(cell[MACHINE]);

    draw_and_read(m, &t);
    struct launch l = launch_of(m, cell[SAID]);
    struct fl_numa_request q = {.len = strtoul(cell[BLOCK], NULL, 10) << 20, .node = FL_NODES};
    l.choice = choice_of(cell[CHOICE]);
    if (strcmp(cell[ASKS], "?") != 0) {
        q.node = fl_topology_find(&t, (unsigned)strtoul(cell[ASKS], NULL, 10));
    }
    q.served = strcmp(cell[TOUCHED], "us") == 0;
    if (strcmp(cell[TOUCHED], "pieces known") == 0) {
        q.piece = (size_t)16 << 20;
        q.piece_nodes = t.cpus;
        q.piece_first = 1;
    }
    const char *text = lies(&l, q);
    if (strcmp(text, cell[LIES]) != 0) {
        fail_msg("%s on %s, %s, asked on %s for %s: \"%s\", not \"%s\"", cell[SAID], m->name,
                 cell[CHOICE], cell[ASKS], cell[BLOCK], text, cell[LIES]);
    }
}

CASE(each_row_of_the_document_is_decided_so)
{
    static char text[65536];
    char *at = text, *cell[CELLS];
    size_t rows = 0;

    (void)read_text(FL_NUMA_DOC, text, sizeof text);
    for (; next_row(&at, cell); rows++) {
        check_row(cell);
    }
    assert_int_equal(rows, 85);
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
        draw_and_read(windows[i].machine, &t);
        struct launch l = {.policy = {windows[i].policy, set_or(windows[i].policy_nodes, 0)},
                           .allowed = set_or(windows[i].allowed, t.memory),
                           .cpus = t.cpus,
                           .choice = {windows[i].choice, set_or(windows[i].choice_nodes, 0)}};
        struct fl_numa_view v = view_of(&l);
        struct fl_node_ids got = {{0}}, want = ids_of(windows[i].nodes);
        int mode = -2;
        assert_int_equal(fl_numa_window(&v, &mode, &got), windows[i].mode >= 0);
        if (windows[i].mode >= 0) {
            assert_int_equal(mode, windows[i].mode);
            assert_memory_equal(&got, &want, sizeof got);
        }
    }
}

int main(void)
{
    fake_install();
    return RUN_CASES();
}
