/* A node without room: who did not ask for it goes to the nearest that has some; who is bound to it
 * gets ENOMEM, and is not killed. The node is the last one with CPUs; this process keeps it
 * full. */
#include "placed.h"

#include <signal.h>
#include <sys/mman.h>

enum { LEFT_MIB = 96, PIECE_MIB = 8 }; /* an eighth of the node is the kernel's */
enum { STAYS_US = 500000, TEXT = 64 };
#define WANTED_MIB "192" /* more than is left there */

static int full;

static bool is_full(void)
{
    return nodes_free_mib(full) <= LEFT_MIB + PIECE_MIB;
}

/* Until it stays so: the kernel reclaims what it can spare, a moment after it was asked for too
 * much. False: the pieces went elsewhere. */
static bool fill_up(void)
{
    for (int i = 0; !is_full() || (usleep(STAYS_US), !is_full()); i++) {
        void *p = mmap(NULL, (size_t)PIECE_MIB << 20, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED || i > 4096 ||
            !nodes_policy_of(p, (size_t)PIECE_MIB << 20, POLICY_BIND, 1ul << full)) {
            return false;
        }
        memset(p, 1, (size_t)PIECE_MIB << 20);
    }
    return true;
}

/* The kernel ends the greatest process, and that is this one. */
static bool spare(const char *score)
{
    return fl_write_text("/proc/self/oom_score_adj", score);
}

static void do_not_spare(void *arg)
{
    (void)arg;
    if (!spare("0")) {
        _exit(FL_SKIP);
    }
}

static const struct fl_run *run(enum allocator who, unsigned long mask)
{
    char node[TEXT], bound[TEXT];

    snprintf(node, sizeof node, "%d", full);
    snprintf(bound, sizeof bound, "%#lx", mask);
    return FL_RUN(FL_ARGV("victim_nodes", "full", node, bound, WANTED_MIB),
                  .preload = who == GLIBC ? "" : NULL, .in_child = do_not_spare);
}

CASE(the_node_is_full)
{
    assert_in_range(nodes_free_mib(full), 0, LEFT_MIB + PIECE_MIB);
    for (int i = 0; i < vm.n; i++) {
        assert_true(i == full || nodes_free_mib(i) > 256);
    }
}

static int nearest(void)
{
    int best = full == 0 ? 1 : 0;

    for (int i = 0; i < vm.n; i++) {
        if (i != full && vm.distance[full][i] < vm.distance[full][best]) {
            best = i;
        }
    }
    return best;
}

static void check_nearest(enum allocator who)
{
    const struct fl_run *r = fl_run_assert_clean(run(who, 0));

    assert_int_equal(fl_run_said(r, "refused "), 0);
    /* What is not on the full node is on the nearest. */
    for (int i = 0; i < vm.n; i++) {
        char key[TEXT];
        snprintf(key, sizeof key, " node%d ", i);
        if (i != full && i != nearest() && fl_run_said(r, key) > 0) {
            fail_msg("pages on node %d, which is not the nearest (%d): %s", i, nearest(), r->out);
        }
    }
    char key[TEXT];
    snprintf(key, sizeof key, " node%d ", nearest());
    assert_true(fl_run_said(r, key) > 0);
}

CASE_IS(glibc_goes_to_the_nearest, check_nearest(GLIBC))

CASE(glibc_is_killed_when_bound)
{
    assert_int_equal(run(GLIBC, 1ul << full)->term_signal, SIGKILL);
}

CASE_IS(the_nearest_is_taken, check_nearest(FAULTLESS))

CASE(bound_it_is_refused_and_not_killed)
{
    const struct fl_run *r = run(FAULTLESS, 1ul << full);
    fl_run_assert_clean(r);
    assert_true(fl_run_said(r, "refused ") > 0);
    vm_assert_on(r, "full", full, 100);
}

int main(void)
{
    vm_start();
    assert_true(spare("-1000"));
    full = nodes_last_cpu(&vm);
    FL_SKIP_UNLESS(fill_up(), "test_vm_full", "needs a node that can be filled");
    return RUN_CASES();
}
