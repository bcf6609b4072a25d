/* faultstat nodes, and the nodes in run and compare, against what this process knows of its own
 * pages from move_pages(2). True on one node and on several. */
#include "cases.h"
#include "child.h"

#include <sys/mman.h>
#include <sys/syscall.h>

enum { FL_MIB = 96, FL_PAGE = 4096 };

#define RUN(status, ...) fl_child_ends(status, ARGV(FL_FAULTSTAT, __VA_ARGS__), NULL)

static double anonymous_of(const json_t *nodes)
{
    double sum = 0;
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        sum += fl_child_number(json_array_get(nodes, i), "anonymous_bytes");
    }
    return sum;
}

static const json_t *nodes_of_this(const json_t **root)
{
    const char *pid = text_as("%d", (int)getpid());
    RUN(0, "nodes", "--json=-", pid);
    *root = fl_child_json(output.out);
    assert_int_equal(json_array_size(*root), 1);
    assert_int_equal(fl_child_number(json_array_get(*root, 0), "pid"), getpid());
    return json_object_get(json_array_get(*root, 0), "nodes");
}

static double anonymous_on(const json_t *nodes, int id)
{
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        if ((int)fl_child_number(json_array_get(nodes, i), "node") == id) {
            return fl_child_number(json_array_get(nodes, i), "anonymous_bytes");
        }
    }
    return 0;
}

static int node_of(void *page)
{
    int id = -1;
    return syscall(SYS_move_pages, 0, 1UL, &page, NULL, &id, 0) == 0 ? id : -1;
}

CASE(memory_is_counted_where_it_lies)
{
    size_t len = (size_t)FL_MIB << 20;
    const json_t *before_root;
    const json_t *after_root;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *base = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, -1, 0);
    assert_ptr_not_equal(base, MAP_FAILED);
    const json_t *before = nodes_of_this(&before_root);
    memset(base, 1, len);
    double moved[64] = {0};
    for (size_t at = 0; at < len; at += FL_PAGE) {
        int id = node_of(base + at);
        assert_in_range(id, 0, 63);
        moved[id] += FL_PAGE;
    }
    const json_t *after = nodes_of_this(&after_root);
    for (int id = 0; id < 64; id++) {
        double grown = anonymous_on(after, id) - anonymous_on(before, id);
        if (grown < moved[id] || grown > moved[id] + (4 << 20)) { /* the parser's own, too */
            fail_msg("node %d: %.0f bytes more, %.0f of them touched", id, grown, moved[id]);
        }
    }
    double remote = fl_child_number(json_array_get(after_root, 0), "remote_pct");
    assert_true(remote >= 0 && remote <= 100);
    munmap(base, len);
}

CASE(text_has_a_line_a_node)
{
    const char *pid = text_as("%d", (int)getpid());
    RUN(0, "nodes", pid, pid);
    assert_says(output.out, "memory by node");
    assert_says(output.out, "\n    node ");
    assert_says(output.out, "\n  remote ");
}

CASE(what_is_no_process_is_said)
{
    RUN(1, "nodes", "2147483647");
    assert_string_equal(output.err, "faultstat: 2147483647: No such file or directory\n");
    RUN(125, "nodes", "self");
    RUN(125, "nodes", "0");
    RUN(125, "nodes");
}

/* It marks six steps; the pages of one are there at each mark but gone at the next. */
CASE(a_run_has_its_nodes_where_they_are_asked_for)
{
    RUN(0, "run", "--nodes", "--json", "/dev/stderr", "--", FL_VICTIM, "3000", "0", "6");
    const json_t *root = fl_child_json(output.err);
    assert_true(anonymous_of(json_object_get(root, "nodes")) > 0);
    assert_true(fl_child_number(root, "remote_pct") >= 0);
    assert_true(fl_child_number(root, "remote_if_shared_pct") >= 0);
    RUN(0, "run", "--nodes", "--", FL_VICTIM, "3000", "0", "6");
    assert_says(output.err, "memory by node");
}

CASE(a_comparison_has_nodes_by_allocator)
{
    RUN(0, "compare", "--nodes", "-a", "glibc", "-n", "2", "-j", "-", "--", FL_VICTIM, "3000", "0",
        "6");
    const json_t *root = fl_child_json(output.out);
    const json_t *peer = fl_child_item(root, "allocators", 0);
    const json_t *run = fl_child_item(peer, "runs", 0);
    assert_true(anonymous_of(json_object_get(run, "nodes")) > 0);
    assert_true(fl_child_number(json_object_get(peer, "median"), "remote_pct") >= 0);
    assert_says(output.err, "remote %");
    assert_says(output.err, "MiB by node");
}

CASES_MAIN()
