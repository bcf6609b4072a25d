#include "placed.h"

#include <stdlib.h>

enum { PATIENCE = 100 };

struct nodes vm;

void vm_start(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* a guest may end without notice */
    nodes_read(&vm);
}

const struct fl_run *vm_run(enum allocator who, const char *const argv[], const char *const env[])
{
    const struct fl_run *r =
        FL_RUN(argv, .env = env, .preload = who == GLIBC ? "" : NULL, .seconds = PATIENCE);

    if (who == GLIBC) {
        fl_run_assert_clean(r);
    } else {
        fl_run_assert_active(r);
    }
    return r;
}

/* False: no line begins with the label. */
static bool read_line(const struct fl_run *r, const char *label, struct census *c)
{
    size_t len = strlen(label);

    memset(c, 0, sizeof *c);
    for (const char *line = r->out; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, label, len) != 0 || line[len] != ':') {
            continue;
        }
        for (int i = 0; i < vm.n; i++) {
            char key[NODES_TEXT];
            snprintf(key, sizeof key, " node%d ", i);
            const char *p = strstr(line, key);
            c->on[i] = p != NULL ? atol(p + strlen(key)) : 0;
        }
        const char *p = strstr(line, " nowhere ");
        c->nowhere = p != NULL ? atol(p + strlen(" nowhere ")) : 0;
        return true;
    }
    return false;
}

static long total(const struct fl_run *r, const char *label, struct census *c)
{
    long sum = 0;

    if (!read_line(r, label, c)) {
        fail_msg("no line %s in: %s", label, r->out);
    }
    for (int i = 0; i < vm.n; i++) {
        sum += c->on[i];
    }
    sum += c->nowhere;
    assert_true(sum > 0);
    return sum;
}

void vm_assert_on(const struct fl_run *r, const char *label, int node, double percent)
{
    struct census c;
    long all = total(r, label, &c);
    double share = 100 * (double)c.on[node] / (double)all;

    if (share < percent) {
        fail_msg("%s: %.1f %% on node %d, not %.1f: %s", label, share, node, percent, r->out);
    }
}

void vm_assert_each_on_its_own(const struct fl_run *r, const char *what, double percent)
{
    for (int i = 0; i < vm.n; i++) {
        char label[NODES_TEXT];
        snprintf(label, sizeof label, "%s %d", what, i);
        if (vm.has_cpu[i]) {
            vm_assert_on(r, label, i, percent);
        }
    }
}

void vm_assert_spread(const struct fl_run *r, const char *label,
                      const int weights[static NODES_MOST], double within)
{
    struct census c;
    long all = total(r, label, &c);
    int sum = 0;

    for (int i = 0; i < vm.n; i++) {
        sum += weights[i];
    }
    for (int i = 0; i < vm.n; i++) {
        double fair = (double)all * weights[i] / sum, off = (double)c.on[i] - fair;
        if ((off < 0 ? -off : off) > (double)all * within / 100) {
            fail_msg("%s: node %d has %ld pages of %ld, not %.0f: %s", label, i, c.on[i], all, fair,
                     r->out);
        }
    }
}

long vm_said(const struct fl_run *r, const char *what, int node)
{
    char key[NODES_TEXT];

    snprintf(key, sizeof key, "%s %d ", what, node);
    return fl_run_said(r, key);
}

#define TUNING "/sys/kernel/debug/sched/numa_balancing/"

void vm_balance(void)
{
    assert_true(fl_sysctl_set("/proc/sys/kernel/numa_balancing", "1"));
    (void)fl_sysctl_set(TUNING "scan_delay_ms", "100");
    (void)fl_sysctl_set(TUNING "scan_period_min_ms", "100");
    (void)fl_sysctl_set(TUNING "scan_period_max_ms", "200");
}

int vm_stop_balancing(void **state)
{
    (void)state;
    fl_sysctl_restore();
    return 0;
}
