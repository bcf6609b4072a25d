/* Heaps: what create asks of the kernel, and what it refuses; old programs' options and
 * statistics. */
#include "heap/heap.h"

#include "cases.h"
#include "unit/fake_sys.h"

#include <numaif.h>

#define MIB(n) ((size_t)(n) << 20)

static struct fl_nodes_sys nodes;
static struct {
    struct fl_range range;
    int mode, rc;
    uint64_t ids;
} bound;

static char named[FL_HEAP_NAME];
static struct fl_range named_range;

static int fake_name(struct fl_range r, const char *name)
{
    if (strncmp(name, "faultless:heap:", strlen("faultless:heap:")) == 0) {
        named_range = r;
        snprintf(named, sizeof named, "%s", name);
    }
    return 0;
}

static int fake_bind(struct fl_range r, int mode, const struct fl_node_ids *ids)
{
    bound.range = r;
    bound.mode = mode;
    bound.ids = ids->word[0];
    return bound.rc;
}

static void setup(void)
{
    fake_install();
    fake_file("/proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n");
    memset(&bound, 0, sizeof bound);
    nodes = fl_nodes;
    fl_nodes.bind = fake_bind;
    fl_sys.name = fake_name;
}

static void teardown(void)
{
    fl_nodes = nodes;
}

static struct fl_heap_options options(size_t bytes)
{
    struct fl_heap_options o;

    fl_heap_defaults(&o);
    o.bytes = bytes;
    return o;
}

static struct fl_heap *make(const struct fl_heap_options *o)
{
    struct fl_heap *h = NULL;

    assert_int_equal(fl_heap_make(o, &h), 0);
    assert_null(fl_heap_check(h));
    return h;
}

static struct fl_heap_stats stats(struct fl_heap *h)
{
    struct fl_heap_stats s = {.size = sizeof s};

    assert_int_equal(fl_heap_stats_read(h, &s), 0);
    return s;
}

static unsigned advised(struct fl_range r, enum fl_sys_advice advice)
{
    unsigned n = 0;

    for (size_t i = 0; i < fake.nlog; i++) {
        const struct fake_call *c = &fake.log[i];
        n += c->slot == FAKE_ADVISE && c->advice == advice && c->range.base == r.base;
    }
    return n;
}

CASE(what_was_asked_for_is_what_the_kernel_is_told)
{
    struct fl_heap_options o = options(MIB(3));

    o.node = 2;
    o.name = "index";
    struct fl_heap *h = make(&o);
    assert_int_equal(h->data.all.len, MIB(4)); /* whole huge pages */
    assert_int_equal(h->data.all.base % fl_page.huge, 0);
    assert_string_equal(named, "faultless:heap:index");
    assert_int_equal(named_range.base, h->data.all.base);
    assert_int_equal(named_range.len, h->data.all.len);
    assert_int_equal(advised(h->data.all, FL_ADVICE_HUGE), 1);
    assert_int_equal(bound.range.base, h->data.all.base);
    assert_int_equal(bound.range.len, h->data.all.len);
    assert_int_equal(bound.mode, MPOL_PREFERRED);
    assert_int_equal(bound.ids, 1 << 2);
    assert_int_equal(fake.count[FAKE_POPULATE], 0); /* by touch */
    assert_int_equal(stats(h).resident_bytes, 0);
    assert_int_equal(stats(h).longest_bytes, MIB(4));
    assert_int_equal(fl_heap_destroy(h), 0);
    assert_int_equal(fake_mapped(), 0);
}

CASE(kinds_differ_in_their_pages)
{
    struct fl_heap_options o = options(MIB(4));

    o.kind = FL_HEAP_PREFAULTED;
    struct fl_heap *h = make(&o);
    assert_int_equal(stats(h).resident_bytes, MIB(4));
    assert_int_equal(advised(h->data.all, FL_ADVICE_NO_FORK), 0); /* a child has its copy */
    assert_int_equal(fl_heap_destroy(h), 0);
    o.kind = FL_HEAP_BASE;
    fake_forget();
    h = make(&o);
    assert_int_equal(advised(h->data.all, FL_ADVICE_NO_HUGE), 1);
    assert_int_equal(advised(h->data.all, FL_ADVICE_HUGE), 0);
    assert_int_equal(bound.range.len, 0); /* node -1 */
    assert_int_equal(fl_heap_destroy(h), 0);
}

static void refuses(int rc, const struct fl_heap_options *o)
{
    struct fl_heap *h = (struct fl_heap *)(uintptr_t)1;

    assert_int_equal(fl_heap_make(o, &h), rc);
    assert_ptr_equal(h, (struct fl_heap *)(uintptr_t)1);
    assert_int_equal(fake_mapped(), 0); /* nothing is left behind */
}

CASE(what_makes_no_sense_is_refused)
{
    static const char *const names[] = {
        "",     "a[b",  "a]b",
        "a\\b", "a$b",  "a`b",
        "a\nb", "\x80", "0123456789012345678901234567890123456789012345678901234567890123+"};
    struct fl_heap_options o = options(0);

    refuses(-EINVAL, NULL);
    refuses(-EINVAL, &o);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        o = options(MIB(2));
        o.name = names[i];
        refuses(-EINVAL, &o);
    }
    o = options(SIZE_MAX - 1);
    refuses(-EINVAL, &o);
    o = options(MIB(2));
    o.kind = (enum fl_heap_kind)7;
    refuses(-EINVAL, &o);
    o = options(MIB(2));
    o.node = -2;
    refuses(-EINVAL, &o);
    o = options(MIB(2));
    o.size = 0;
    refuses(-EINVAL, &o);
    assert_int_equal(fl_heap_make(&o, NULL), -EINVAL);
    assert_int_equal(fl_heap_destroy(NULL), -EINVAL);
}

CASE(a_refusal_of_the_kernels_is_told)
{
    struct fl_heap_options o = options(MIB(2));

    o.node = 9;
    bound.rc = -EINVAL; /* there is no such node */
    refuses(-EINVAL, &o);
    bound.rc = -EPERM; /* a sandbox */
    refuses(-EPERM, &o);
    o = options(MIB(1024)); /* twice of what is available */
    o.kind = FL_HEAP_PREFAULTED;
    refuses(-ENOMEM, &o);
    o = options(MIB(2));
    for (unsigned n = 1; n <= 2; n++) { /* no addresses: for records, for data */
        fake.reserve_refuse = 1;
        fake.reserve_skip = n - 1;
        refuses(-ENOMEM, &o);
        fake.reserve_refuse = 0;
    }
    fake.commit_max = MIB(1);
    refuses(-ENOMEM, &o);
}

/* A program that was built when options ended behind `bytes`. */
CASE(an_older_program_has_the_defaults)
{
    struct {
        size_t size, bytes;
        unsigned char behind[sizeof(struct fl_heap_options)];
    } old = {.size = offsetof(struct fl_heap_options, kind), .bytes = MIB(2)};

    memset(old.behind, 0xff, sizeof old.behind); /* its next variables: not to be read */
    struct fl_heap *h = make((const struct fl_heap_options *)(const void *)&old);
    assert_string_equal(named, "faultless:heap:heap");
    assert_int_equal(bound.range.len, 0);

    struct {
        uint64_t size, bytes, used_bytes;
        unsigned char behind[sizeof(struct fl_heap_stats)];
    } figures = {.size = offsetof(struct fl_heap_stats, used_peak_bytes)};
    memset(figures.behind, 0x5a, sizeof figures.behind);
    assert_int_equal(fl_heap_stats_read(h, (struct fl_heap_stats *)(void *)&figures), 0);
    assert_int_equal(figures.size, offsetof(struct fl_heap_stats, used_peak_bytes));
    assert_int_equal(figures.bytes, MIB(2));
    for (size_t i = 0; i < sizeof figures.behind; i++) {
        assert_int_equal(figures.behind[i], 0x5a);
    }
    figures.size = sizeof figures.size;
    assert_int_equal(fl_heap_stats_read(h, (struct fl_heap_stats *)(void *)&figures), -EINVAL);
    assert_int_equal(fl_heap_destroy(h), 0);
}

CASE(a_newer_program_is_told_what_is_not_known)
{
    struct {
        struct fl_heap_options known;
        uint64_t later;
    } o = {.known = options(MIB(2))};

    o.known.size = sizeof o;
    struct fl_heap *h = make(&o.known); /* its new member says nothing */
    o.later = 1;
    struct fl_heap *other;
    assert_int_equal(fl_heap_make(&o.known, &other), -E2BIG);

    struct {
        struct fl_heap_stats known;
        uint64_t later;
    } s = {.known.size = sizeof s, .later = 1};
    assert_int_equal(fl_heap_stats_read(h, &s.known), 0);
    assert_int_equal(s.later, 0);
    assert_int_equal(fl_heap_destroy(h), 0);
}

/* Parts of blocks are none: the heap cannot know, but its tables stay whole. */
CASE(a_free_of_parts_breaks_no_table)
{
    enum { U = FL_HEAP_UNIT };
    struct fl_heap_options o = options(MIB(2));
    struct fl_heap *h = make(&o);
    char *p;
    void *last;

    assert_int_equal(fl_heap_alloc(h, (size_t)8 * U, 0, (void **)&p), 0);
    assert_int_equal(fl_heap_free(h, p, U), 0);
    assert_int_equal(fl_heap_free(h, p + (ptrdiff_t)2 * U, U), -EINVAL); /* there is no block */
    assert_null(fl_heap_check(h));
    assert_int_equal(stats(h).blocks, 0);
    for (unsigned i = 0; i < 2; i++) { /* takes cut what no block accounts for */
        assert_int_equal(fl_heap_alloc(h, U, (size_t)1 << (12 + i), &last), 0);
    }
    assert_int_equal(fl_heap_free(h, p + (ptrdiff_t)2 * U, U), -EINVAL); /* no descriptor is left */
    assert_null(fl_heap_check(h));
    assert_int_equal(fl_heap_free(h, last, U), 0); /* it merges: now there is one */
    assert_int_equal(fl_heap_free(h, p + (ptrdiff_t)2 * U, U), 0);
    assert_null(fl_heap_check(h));
}

CASE(a_child_that_cannot_trust_the_tables_says_so)
{
    struct fl_heap_options o = options(MIB(2));
    struct fl_heap *h = make(&o);
    void *p;

    fl_heap_fork_lock();
    fl_heap_fork_child(true);
    assert_int_equal(fl_heap_alloc(h, 100, 0, &p), 0);
    /* Forked in a handler, amid our own work. The last test: it stays so. */
    fl_heap_fork_child(false);
    assert_int_equal(fl_heap_alloc(h, 100, 0, &p), -ECHILD);
    assert_int_equal(fl_heap_free(h, p, 100), -ECHILD);
    assert_int_equal(fl_heap_destroy(h), -ECHILD);
}

CASES_MAIN(.setup = setup, .teardown = teardown)
