/* What a launch said of nodes is obeyed, in the modes of numactl(8), of set_mempolicy(2) and of
 * cpusets. Each is also put to glibc, where it is the kernel that obeys. */
#include "placed.h"

#include <sys/stat.h>

enum { WORDS = 3, TEXT = 96, LOOSELY = 20 };
#define NUMACTL "/usr/bin/numactl"
#define WEIGHTS "/sys/kernel/mm/mempolicy/weighted_interleave"

/* FIRST and LAST: nodes with CPUs; FAR: the last with memory, which may have none. */
enum place { FIRST, LAST, FAR, SPREAD };

static const struct launch {
    const char *name;
    /* F, L and A stand for the first, last and far node, C for the last one's last CPU. */
    const char *words[WORDS];
    double percent; /* on the place; of SPREAD: how far from even */
    enum place place;
} launches[] = {
    {"membind", {"--membind=A"}, 100, FAR},
    {"membind_of_a_node_with_cpus", {"--membind=L"}, 100, LAST},
    {"membind_elsewhere_than_the_cpus", {"--cpunodebind=L", "--membind=F"}, 100, FIRST},
    {"preferred", {"--preferred=A"}, 99, FAR},
    {"preferred_many", {"--preferred-many=A"}, 99, FAR},
    {"interleave", {"--interleave=all"}, 1, SPREAD},
    {"localalloc", {"--cpunodebind=L", "--localalloc"}, 99, LAST},
    {"cpunodebind", {"--cpunodebind=L"}, 99, LAST},
    {"physcpubind", {"--physcpubind=C"}, 99, LAST},
};
enum { LAUNCHES = sizeof launches / sizeof launches[0] };

static int node_at(enum place place)
{
    switch (place) {
    case FIRST:
        return nodes_first_cpu(&vm);
    case LAST:
        return nodes_last_cpu(&vm);
    case FAR:
    case SPREAD:
    default:
        return nodes_last_memory(&vm);
    }
}

/* The word with numbers for its letters, to free. */
static char *spell(const char *word)
{
    static const char letters[] = "FLAC";
    const int means[] = {node_at(FIRST), node_at(LAST), node_at(FAR), vm.last_cpu[node_at(LAST)]};
    const char *equals = strchr(word, '=');
    const char *letter = equals != NULL ? strchr(letters, equals[1]) : NULL;
    char *out;

    if (letter == NULL || *letter == '\0') {
        return strdup(word);
    }
    assert_true(asprintf(&out, "%.*s%d", (int)(equals + 1 - word), word, means[letter - letters]) >
                0);
    return out;
}

static void check_launch(enum allocator who, const struct launch *l)
{
    const char *argv[WORDS + 4] = {NUMACTL};
    char *spelt[WORDS] = {NULL};
    size_t n = 1;

    for (size_t i = 0; i < WORDS && l->words[i] != NULL; i++) {
        spelt[i] = spell(l->words[i]);
        argv[n++] = spelt[i];
    }
    argv[n++] = FL_VICTIM_DIR "/victim_nodes";
    argv[n++] = "policy";
    const struct fl_run *r = vm_run(who, argv, NULL);
    for (size_t i = 0; i < WORDS; i++) {
        free(spelt[i]);
    }
    if (l->place != SPREAD) {
        vm_assert_on(r, "policy", node_at(l->place), l->percent);
        return;
    }
    int even[NODES_MOST];
    for (int i = 0; i < NODES_MOST; i++) {
        even[i] = i < vm.n;
    }
    /* Blocks of glibc's begin at any page, and its huge pages where the kernel can have them. */
    vm_assert_spread(r, "policy", even, who == GLIBC ? LOOSELY : l->percent);
}

static void check_launches(enum allocator who)
{
    for (size_t i = 0; i < LAUNCHES; i++) {
        print_message("# %s\n", launches[i].name);
        check_launch(who, &launches[i]);
    }
}

/* The program's own calls, one after the other; what the former policy left free must not be handed
 * out under the next. */
static void check_changes(enum allocator who)
{
    char far[TEXT], first[TEXT], all[TEXT];
    int even[NODES_MOST];

    snprintf(far, sizeof far, "%#lx", 1ul << node_at(FAR));
    snprintf(first, sizeof first, "%#lx", 1ul << node_at(FIRST));
    snprintf(all, sizeof all, "%#lx", (1ul << vm.n) - 1);
    const struct fl_run *r = vm_run(
        who, FL_ARGV("victim_nodes", "policy", "2", far, "2", first, "3", all, "1", far), NULL);
    for (int i = 0; i < NODES_MOST; i++) {
        even[i] = i < vm.n;
    }
    /* What glibc has taken for one block it may give for the next. */
    vm_assert_on(r, "policy 0", node_at(FAR), who == GLIBC ? 99 : 100);
    vm_assert_on(r, "policy 1", node_at(FIRST), who == GLIBC ? 99 : 100);
    vm_assert_spread(r, "policy 2", even, who == GLIBC ? LOOSELY : 1);
    vm_assert_on(r, "policy 3", node_at(FAR), 99);
}

/* Weights 3, 1, 1, ... */
CASE(weights_are_obeyed)
{
    char path[TEXT], mask[TEXT];
    int weights[NODES_MOST] = {3, 1, 1, 1, 1, 1, 1, 1};

    for (int i = 0; i < vm.n; i++) {
        snprintf(path, sizeof path, WEIGHTS "/node%d", i);
        assert_true(fl_sysctl_set(path, i == 0 ? "3" : "1"));
    }
    snprintf(mask, sizeof mask, "%#lx", (1ul << vm.n) - 1);
    const struct fl_run *r = vm_run(FAULTLESS, FL_ARGV("victim_nodes", "policy", "6", mask), NULL);
    fl_sysctl_restore();
    vm_assert_spread(r, "policy 0", weights, 1);
}

#define GROUP "/sys/fs/cgroup/nodes"

static void join_group(void *arg)
{
    (void)arg;
    if (!fl_write_text(GROUP "/cgroup.procs", "0")) {
        _exit(FL_SKIP);
    }
}

static void check_cpuset(enum allocator who)
{
    char far[TEXT], first[TEXT];

    snprintf(far, sizeof far, "%d", node_at(FAR));
    snprintf(first, sizeof first, "%d", node_at(FIRST));
    assert_true(mkdir(GROUP, 0755) == 0);
    assert_true(fl_write_text(GROUP "/cpuset.mems", far));
    const struct fl_run *r =
        FL_RUN(FL_ARGV("victim_nodes", "cpuset", GROUP "/cpuset.mems", far, first),
               .preload = who == GLIBC ? "" : NULL, .in_child = join_group);
    assert_true(rmdir(GROUP) == 0);
    fl_run_assert_clean(r);
    vm_assert_on(r, "before", node_at(FAR), 100);
    vm_assert_on(r, "after", node_at(FIRST), 100);
}

/* FAULTLESS_NUMA says it where the launch does not. */
CASE(option_binds)
{
    char option[TEXT];

    snprintf(option, sizeof option, "FAULTLESS_NUMA=bind:%d", node_at(FAR));
    vm_assert_on(vm_run(FAULTLESS, FL_ARGV("victim_nodes", "policy"), FL_ENV(option)), "policy",
                 node_at(FAR), 100);
}

/* Without a list: over the nodes next to CPUs. */
CASE(option_interleaves)
{
    int even[NODES_MOST];

    for (int i = 0; i < NODES_MOST; i++) {
        even[i] = i < vm.n && vm.has_cpu[i];
    }
    vm_assert_spread(
        vm_run(FAULTLESS, FL_ARGV("victim_nodes", "policy"), FL_ENV("FAULTLESS_NUMA=interleave")),
        "policy", even, 1);
}

CASE(option_keeps_local)
{
    vm_assert_each_on_its_own(
        vm_run(FAULTLESS, FL_ARGV("victim_nodes", "turns"), FL_ENV("FAULTLESS_NUMA=local")), "turn",
        99);
}

CASE_IS(glibc_obeys_all_launches, check_launches(GLIBC))
CASE_IS(glibc_obeys_changes, check_changes(GLIBC))
CASE_IS(glibc_obeys_cpusets, check_cpuset(GLIBC))
CASE_IS(launches_are_obeyed, check_launches(FAULTLESS))
CASE_IS(changes_are_obeyed, check_changes(FAULTLESS))
CASE_IS(cpusets_are_obeyed, check_cpuset(FAULTLESS))

int main(void)
{
    vm_start();
    if (access(WEIGHTS, F_OK) != 0) { /* Linux 6.9 */
        cmocka_set_skip_filter("weights_are_obeyed");
    }
    return RUN_CASES();
}
