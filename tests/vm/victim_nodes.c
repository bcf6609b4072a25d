/* A program with memory on several nodes, in the ways in which programs come to have it, and where
 * its pages lie.
 *
 *   victim_nodes bound               a thread bound to each node that has CPUs allocates, touches
 *                                    and frees, in rounds
 *   victim_nodes turns               one after the other, sizes changing: each is offered what the
 *                                    other has freed
 *   victim_nodes apart               the first node's thread allocates, each node's thread touches
 *                                    its part
 *   victim_nodes pair                what one node's thread fills, another's reads and frees, to
 *                                    fill memory of its own
 *   victim_nodes again               one thread goes from node to node and has blocks of two sizes
 *                                    there, again and again; then once more on the last one, by
 *                                    set_mempolicy bound to each node in turn
 *   victim_nodes policy [MODE MASK]  allocates and touches as the process was started; or once
 *                                    after each set_mempolicy
 *   victim_nodes cpuset FILE A B     is confined to memory of node A; writes B to FILE amid
 *   victim_nodes full NODE MASK MIB  on NODE, which has no room for MIB; bound to MASK unless that
 *                                    is 0
 *
 * Prints lines "LABEL: node0 N node1 N ... nowhere N", in base pages. */
#include "../preload/victims/victim.h"
#include "nodes.h"

#include <stdbool.h>

enum { BLOCKS = 64, ROUNDS = 3, LABEL = 32 };

static struct nodes nodes;
static pthread_barrier_t together;

struct blocks {
    char *at[BLOCKS];
    size_t each;
    int n;
};

static void touch(char *p, size_t len)
{
    for (size_t i = 0; i < len; i += 4 * KIB) {
        p[i] = (char)(i >> 12);
    }
    p[len - 1] = 1;
}

/* False: malloc had no more; what it gave is there. */
static bool fill(struct blocks *b, int n, size_t each)
{
    b->each = each;
    for (b->n = 0; b->n < n; b->n++) {
        b->at[b->n] = malloc(each);
        if (b->at[b->n] == NULL) {
            return false;
        }
        touch(b->at[b->n], each);
    }
    return true;
}

static void count(struct census *c, const struct blocks *b)
{
    for (int i = 0; i < b->n; i++) {
        nodes_count(c, b->at[i], b->each);
    }
}

static void drop(struct blocks *b)
{
    FREE_ALL(b->at, b->n);
    b->n = 0;
}

static void wait_for_all(void)
{
    int rc = pthread_barrier_wait(&together);
    CHECK(rc == 0 || rc == PTHREAD_BARRIER_SERIAL_THREAD);
}

static void print_for(const char *what, int node, const struct census *c)
{
    char label[LABEL];

    snprintf(label, sizeof label, "%s %d", what, node);
    nodes_print(&nodes, label, c);
}

/* Runs f(node) in a thread bound to each node that has CPUs. */
static void on_each_node(void *(*f)(void *))
{
    pthread_t t[NODES_MOST];
    unsigned threads = 0;

    for (int i = 0; i < nodes.n; i++) {
        threads += nodes.has_cpu[i];
    }
    CHECK(pthread_barrier_init(&together, NULL, threads) == 0);
    for (int i = 0; i < nodes.n; i++) {
        CHECK(!nodes.has_cpu[i] || pthread_create(&t[i], NULL, f, &nodes.cpus[i]) == 0);
    }
    for (int i = 0; i < nodes.n; i++) {
        CHECK(!nodes.has_cpu[i] || pthread_join(t[i], NULL) == 0);
    }
}

static int node_of(const void *cpus)
{
    int node = (int)((const cpu_set_t *)cpus - nodes.cpus);

    nodes_run_on(&nodes, node);
    return node;
}

static const struct kind {
    const char *name;
    size_t each;
    int n;
} kinds[] = {{"small", 256 * KIB, 48}, {"large", 3 * MIB, 8}, {"giant", 40 * MIB, 1}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* The last node's thread comes first: it is offered what the others have freed. */
static void fill_in_turn(struct blocks *b, const struct kind *k, int node)
{
    for (int turn = nodes.n - 1; turn >= 0; turn--) {
        if (nodes.has_cpu[turn]) {
            CHECK(turn != node || fill(b, k->n, k->each));
            wait_for_all();
        }
    }
}

static void *bound_thread(void *arg)
{
    int node = node_of(arg);

    for (const struct kind *k = kinds; k < kinds + KINDS; k++) {
        struct census c = {0};
        for (int round = 0; round < ROUNDS; round++) {
            struct blocks b;
            wait_for_all();
            if (round == ROUNDS - 1) {
                fill_in_turn(&b, k, node);
            } else {
                CHECK(fill(&b, k->n, k->each));
            }
            count(&c, &b);
            wait_for_all();
            drop(&b);
        }
        print_for(k->name, node, &c);
    }
    return NULL;
}

static void bound(char **args)
{
    (void)args;
    on_each_node(bound_thread);
}

static void *turns_thread(void *arg)
{
    int node = node_of(arg);
    struct census c = {0};

    for (int round = 0; round < ROUNDS * 2; round++) {
        for (int turn = 0; turn < nodes.n; turn++) {
            struct blocks b;
            if (!nodes.has_cpu[turn]) {
                continue;
            }
            wait_for_all();
            if (turn == node) {
                CHECK(fill(&b, 12 >> (round % 3), (size_t)(3 << (round % 3)) * MIB));
                count(&c, &b);
                drop(&b);
                usleep(20000); /* time for what keeps freed memory in order */
            }
        }
    }
    print_for("turn", node, &c);
    return NULL;
}

static void turns(char **args)
{
    (void)args;
    on_each_node(turns_thread);
}

enum { PART = 32 * 1024 * 1024 };
static char *whole;

static void *apart_thread(void *arg)
{
    int node = node_of(arg);
    struct census c = {0};

    wait_for_all();
    touch(whole + (size_t)node * PART, PART);
    wait_for_all();
    nodes_count(&c, whole + (size_t)node * PART, PART);
    print_for("part", node, &c);
    return NULL;
}

static void apart(char **args)
{
    struct blocks b;

    (void)args;
    nodes_run_on(&nodes, nodes_first_cpu(&nodes));
    /* A program that has been running: who places pages may need a moment to begin. */
    for (int i = 0; i < 4; i++) {
        CHECK(fill(&b, 4, 16 * MIB));
        usleep(100000);
        drop(&b);
    }
    CHECK(posix_memalign((void **)&whole, 2 * MIB, (size_t)nodes.n * PART) == 0);
    on_each_node(apart_thread);
    free(whole);
}

static struct blocks handed;

static void *pair_thread(void *arg)
{
    int node = node_of(arg), producer = nodes_first_cpu(&nodes), consumer = nodes_last_cpu(&nodes);
    struct census made = {0}, own = {0};

    for (int round = 0; round < ROUNDS * 2; round++) {
        wait_for_all();
        if (node == producer) {
            CHECK(fill(&handed, 8, 4 * MIB));
        }
        wait_for_all();
        if (node == consumer) {
            struct blocks b;
            for (int i = 0; i < handed.n; i++) {
                CHECK(handed.at[i][4 * KIB] == 1);
            }
            count(&made, &handed);
            drop(&handed);
            CHECK(fill(&b, 8, 4 * MIB));
            count(&own, &b);
            drop(&b);
        }
    }
    if (node == consumer) {
        print_for("produced", producer, &made);
        print_for("consumed", consumer, &own);
    }
    return NULL;
}

static void pair(char **args)
{
    (void)args;
    on_each_node(pair_thread);
}

static void allocate_240_mib(const char *label)
{
    struct blocks b;
    struct census c = {0};

    CHECK(fill(&b, 30, 8 * MIB));
    count(&c, &b);
    nodes_print(&nodes, label, &c);
    drop(&b);
}

static void policy(char **args)
{
    char label[LABEL];

    if (args[0] == NULL) {
        allocate_240_mib("policy");
    }
    for (int i = 0; args[0] != NULL; i++, args += 2) {
        CHECK(args[1] != NULL && nodes_policy(atoi(args[0]), strtoul(args[1], NULL, 0)));
        snprintf(label, sizeof label, "policy %d", i);
        allocate_240_mib(label);
    }
}

static void cpuset(char **args)
{
    CHECK(args[0] != NULL && args[1] != NULL && args[2] != NULL);
    allocate_240_mib("before");
    int fd = open(args[0], O_WRONLY | O_CLOEXEC);
    ssize_t len = (ssize_t)strlen(args[2]);
    CHECK(fd >= 0 && write(fd, args[2], (size_t)len) == len);
    close(fd);
    allocate_240_mib("after");
}

enum { AGAIN = 40 };

static void have_again(const char *what, int node)
{
    struct census c = {0};
    struct blocks b;

    for (int i = 0; i < AGAIN; i++) {
        CHECK(fill(&b, 1, (i < AGAIN / 2 ? 1 : 3) * MIB));
        count(&c, &b);
        drop(&b);
    }
    print_for(what, node, &c);
}

/* The round that a label's line counts is the second: by then each node's memory has been free. */
static void again(char **args)
{
    (void)args;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < nodes.n; i++) {
            if (nodes.has_cpu[i]) {
                nodes_run_on(&nodes, i);
                have_again(round == 0 ? "first" : "again", i);
            }
        }
    }
    for (int i = 0; i < nodes.n; i++) {
        if (nodes.has_memory[i]) {
            CHECK(nodes_policy(POLICY_BIND, 1ul << i));
            have_again("told", i);
        }
    }
}

static void full(char **args)
{
    struct blocks b;
    struct census c = {0};

    CHECK(args[0] != NULL && args[1] != NULL && args[2] != NULL);
    nodes_run_on(&nodes, atoi(args[0]));
    unsigned long mask = strtoul(args[1], NULL, 0);
    CHECK(mask == 0 || nodes_policy(POLICY_BIND, mask));
    int wanted = atoi(args[2]) / 8;
    bool all = fill(&b, wanted, 8 * MIB);
    CHECK(all || errno == ENOMEM);
    count(&c, &b);
    nodes_print(&nodes, "full", &c);
    dprintf(1, "refused %d\n", wanted - b.n);
    drop(&b);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(char **args);
    } modes[] = {{"bound", bound},   {"turns", turns},   {"apart", apart}, {"pair", pair},
                 {"policy", policy}, {"cpuset", cpuset}, {"full", full},   {"again", again}};

    nodes_read(&nodes);
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(argv[1], modes[i].name) == 0) {
            modes[i].run(argv + 2);
            return 0;
        }
    }
    dprintf(2, "no such mode\n");
    return 2;
}
