/* Lines of numa_maps and the shares of remote memory, against figures worked out by hand. */
#include "cases.h"
#include "faultstat/nodes.h"

#include <math.h>

static const uint64_t kib = 1 << 10;
static const uint64_t mib = 1 << 20;

CASE(pages_of_a_map_go_to_their_nodes)
{
    struct fl_nodes n = {.count = 0};
    fl_nodes_add_map(
        &n, "7f00 default anon=771 dirty=771 active=0 N0=512 N2=259 kernelpagesize_kB=4\n");
    fl_nodes_add_map(&n, "7f10 interleave:0-1 anon=3 dirty=3 N1=1 N0=2 kernelpagesize_kB=2048\n");
    fl_nodes_add_map(&n, "7f20 prefer (many):0,2 stack anon=2 dirty=2 N2=2 kernelpagesize_kB=4\n");
    fl_nodes_add_map(&n,
                     "7f30 bind:0 file=/lib/x\\040N9\\0755.so mapped=7 N0=7 kernelpagesize_kB=4\n");
    assert_int_equal(n.count, 3);
    assert_int_equal(n.node[0].id, 0);
    assert_int_equal(n.node[0].anonymous, 512 * 4 * kib + 2 * 2 * mib);
    assert_int_equal(n.node[0].file, 7 * 4 * kib);
    assert_int_equal(n.node[1].id, 1);
    assert_int_equal(n.node[1].anonymous, 2 * mib);
    assert_int_equal(n.node[2].id, 2);
    assert_int_equal(n.node[2].anonymous, (259 + 2) * 4 * kib);
}

CASE(what_is_no_count_is_left_alone)
{
    struct fl_nodes n = {.count = 0};
    fl_nodes_add_map(&n, "");
    fl_nodes_add_map(&n, "7f00 default\n");
    fl_nodes_add_map(&n, "7f00 default heap N=5 Nx=5 N1 N1=x NN1=5 kernelpagesize_kB=4\n");
    fl_nodes_add_map(&n, "7f00 default file=/N3=4\n");
    assert_int_equal(n.count, 0);
    fl_nodes_add_map(&n, "7f00 default N3=4"); /* cut: no page size, no line's end */
    assert_int_equal(n.node[0].anonymous, 16 * kib);
}

CASE(more_nodes_than_there_is_room_for_are_dropped)
{
    struct fl_nodes n = {.count = 0};
    char line[64];
    for (int id = 2 * FL_NODES_MAX; id > 0; id--) {
        snprintf(line, sizeof(line), "7f00 default N%d=1 kernelpagesize_kB=4\n", id);
        fl_nodes_add_map(&n, line);
    }
    assert_int_equal(n.count, FL_NODES_MAX);
    for (unsigned i = 0; i < FL_NODES_MAX; i++) {
        assert_int_equal(n.node[i].id, FL_NODES_MAX + 1 + i);
        assert_int_equal(n.node[i].anonymous, 4 * kib);
    }
}

/* Anonymous MiB of nodes 0, 1, 2; threads there and their ticks. */
static struct fl_nodes made(const uint64_t memory[3], const unsigned threads[3],
                            const uint64_t ticks[3])
{
    struct fl_nodes n = {.count = 3};
    for (unsigned i = 0; i < 3; i++) {
        n.node[i] = (struct fl_node){i, memory[i] * mib, 0, threads[i], ticks[i]};
    }
    return n;
}

static void assert_shares(const struct fl_nodes *n, double remote, double shared)
{
    if (fabs(fl_nodes_remote_pct(n) - remote) > 0.01 ||
        fabs(fl_nodes_shared_pct(n) - shared) > 0.01) {
        fail_msg("remote %f and %f, not %f and %f", fl_nodes_remote_pct(n), fl_nodes_shared_pct(n),
                 remote, shared);
    }
}

CASE(shares_are_those_of_the_threads_nodes)
{
    static const struct {
        uint64_t memory[3];
        unsigned threads[3];
        uint64_t ticks[3];
        double remote, shared;
    } table[] = {
        {{100, 0, 0}, {1, 0, 0}, {9, 0, 0}, 0, 0},      /* all at home */
        {{0, 100, 0}, {1, 0, 0}, {9, 0, 0}, 100, 100},  /* bound to the wrong node */
        {{50, 50, 0}, {4, 0, 0}, {9, 0, 0}, 50, 50},    /* interleaved, run on one */
        {{50, 50, 0}, {2, 2, 0}, {98, 98, 0}, 0, 50},   /* first touch, or chance */
        {{100, 0, 0}, {1, 3, 0}, {99, 297, 0}, 0, 75},  /* one thread touched it all */
        {{60, 20, 20}, {1, 1, 0}, {49, 49, 0}, 20, 60}, /* a card without CPUs */
        {{100, 0, 0}, {1, 1, 0}, {0, 0, 0}, 0, 50},     /* too young to have had a tick */
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct fl_nodes n = made(table[i].memory, table[i].threads, table[i].ticks);
        assert_shares(&n, table[i].remote, table[i].shared);
    }
}

CASE(without_memory_or_threads_there_is_no_share)
{
    struct fl_nodes n = {.count = 0};
    assert_true(isnan(fl_nodes_remote_pct(&n)) && isnan(fl_nodes_shared_pct(&n)));
    fl_nodes_add_map(&n, "7f00 default N3=4 kernelpagesize_kB=4\n");
    assert_true(isnan(fl_nodes_remote_pct(&n)) && isnan(fl_nodes_shared_pct(&n)));
    fl_nodes_add_thread(&n, 3, 1);
    assert_shares(&n, 0, 0);
    fl_nodes_add_thread(&n, 1, 5);
    assert_shares(&n, 0, 75);
    assert_int_equal(n.node[0].id, 1);
}

CASES_MAIN()
