/* Random requests and frees in one heap: no two blocks share a byte, each is aligned, the
 * invariants hold, what is wrong is refused, and when all is free again the heap is one piece. */
#include "heap/heap.h"

#include "prop/seed.h"
#include "unit/cmocka_all.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

enum { BLOCKS = 256, OPS = 20000, MOST = 64000 };

static const size_t heap_bytes = (size_t)4 << 20;

struct block {
    unsigned char *p; /* NULL: none */
    size_t len;
};

static struct fl_heap *heap_of(size_t bytes)
{
    struct fl_heap_options o;
    struct fl_heap *h = NULL;

    fl_heap_defaults(&o);
    o.bytes = bytes;
    assert_int_equal(fl_heap_make(&o, &h), 0);
    return h;
}

static bool is_filled(const struct block *b, unsigned char with)
{
    for (size_t i = 0; i < b->len; i++) {
        if (b->p[i] != with) {
            return false;
        }
    }
    return true;
}

static void give(struct fl_heap *h, struct block *b, unsigned char with)
{
    assert_true(is_filled(b, with));
    assert_int_equal(fl_heap_free(h, b->p, b->len), 0);
    assert_int_equal(fl_heap_free(h, b->p, b->len), -EINVAL); /* it is free */
    b->p = NULL;
}

static void take(struct fl_heap *h, struct block *b, unsigned char with, uint64_t *seed)
{
    size_t align = (size_t)1 << seed_next(seed) % 17;
    void *p;

    b->len = 1 + seed_next(seed) % MOST;
    int rc = fl_heap_alloc(h, b->len, align, &p);
    if (rc == -ENOMEM) {
        return;
    }
    assert_int_equal(rc, 0);
    assert_int_equal((uintptr_t)p % (align < 64 ? 64 : align), 0);
    b->p = p;
    memset(b->p, with, b->len);
}

static void blocks_are_apart(void **state)
{
    (void)state;
    static struct block block[BLOCKS];
    uint64_t seed = seed_read();
    struct fl_heap *h = heap_of(heap_bytes);

    for (unsigned n = 0; n < OPS; n++) {
        unsigned i = seed_next(&seed) % BLOCKS;
        if (block[i].p != NULL) {
            give(h, &block[i], (unsigned char)i);
        } else {
            take(h, &block[i], (unsigned char)i, &seed);
        }
        assert_null(n % 16 == 0 ? fl_heap_check(h) : NULL);
    }
    assert_int_not_equal(h->s.refused, 0); /* it was full now and then */
    assert_int_equal(fl_heap_destroy(h), -EBUSY);
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (block[i].p != NULL) {
            give(h, &block[i], (unsigned char)i);
        }
    }
    assert_null(fl_heap_check(h));
    assert_int_equal(h->s.used_bytes, 0);
    assert_int_equal(RB_ROOT(&h->free)->len, heap_bytes);
    assert_int_equal(fl_heap_destroy(h), 0);
}

/* As many free pieces as there can be: every other unit of a full heap. */
static void the_smallest_blocks_fill_it(void **state)
{
    (void)state;
    struct fl_heap *h = heap_of(1);
    size_t n = h->s.bytes / FL_HEAP_UNIT;
    char *base = (char *)h->data.all.base; /* NOLINT(performance-no-int-to-ptr) */
    void *p;

    for (size_t i = 0; i < n; i++) {
        assert_int_equal(fl_heap_alloc(h, 0, 0, &p), 0);
    }
    assert_int_equal(fl_heap_alloc(h, 0, 0, &p), -ENOMEM);
    for (size_t i = 0; i < n; i += 2) {
        assert_int_equal(fl_heap_free(h, base + i * FL_HEAP_UNIT, 1), 0);
    }
    assert_null(fl_heap_check(h));
    assert_int_equal(fl_heap_alloc(h, 65, 0, &p), -ENOMEM);
    for (size_t i = 1; i < n; i += 2) {
        assert_int_equal(fl_heap_free(h, base + i * FL_HEAP_UNIT, 1), 0);
    }
    assert_null(fl_heap_check(h));
    assert_int_equal(fl_heap_alloc(h, h->s.bytes, h->s.bytes, &p), 0); /* aligned as it lies */
    assert_int_equal(fl_heap_free(h, p, h->s.bytes), 0);
    assert_int_equal(fl_heap_destroy(h), 0);
}

static void *takes_and_gives(void *arg)
{
    static _Atomic uint64_t seed_of_next = 1;
    struct fl_heap *h = arg;
    uint64_t seed = seed_of_next++;
    struct block b = {.p = NULL};
    bool good = true;

    for (unsigned n = 0; n < OPS / 10; n++) {
        unsigned char with = (unsigned char)seed_next(&seed);
        void *p;
        b.len = 1 + seed_next(&seed) % MOST;
        if (fl_heap_alloc(h, b.len, 0, &p) == 0) {
            b.p = memset(p, with, b.len);
            good = is_filled(&b, with) && fl_heap_free(h, p, b.len) == 0 && good;
        }
    }
    return good ? h : NULL;
}

static void threads_share_one(void **state)
{
    (void)state;
    struct fl_heap *h = heap_of(heap_bytes);
    pthread_t t[4];
    void *good;

    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, takes_and_gives, h), 0);
    }
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        assert_int_equal(pthread_join(t[i], &good), 0);
        assert_ptr_equal(good, h);
    }
    assert_null(fl_heap_check(h));
    assert_int_equal(h->s.allocs, h->s.frees);
    assert_int_equal(fl_heap_destroy(h), 0);
}

static void what_is_wrong_is_refused(void **state)
{
    (void)state;
    struct fl_heap *h = heap_of(1);
    char other[64];
    void *p, *q;

    assert_int_equal(fl_heap_alloc(h, 100, 0, &p), 0);
    assert_int_equal(fl_heap_alloc(h, 100, 3, &q), -EINVAL);
    assert_int_equal(fl_heap_alloc(h, SIZE_MAX, 0, &q), -ENOMEM);
    assert_int_equal(fl_heap_alloc(h, SIZE_MAX / 2, (size_t)1 << 63, &q), -ENOMEM);
    assert_int_equal(fl_heap_alloc(h, 1, 0, NULL), -EINVAL);
    assert_int_equal(fl_heap_alloc(NULL, 1, 0, &q), -EINVAL);
    assert_int_equal(fl_heap_free(h, (char *)p + 1, 100), -EINVAL);
    assert_int_equal(fl_heap_free(h, p, 200), -EINVAL); /* what follows is free */
    assert_int_equal(fl_heap_free(h, p, SIZE_MAX), -EINVAL);
    assert_int_equal(fl_heap_free(h, other, 1), -EINVAL);
    assert_int_equal(fl_heap_free(NULL, p, 100), -EINVAL);
    assert_int_equal(fl_heap_free(h, NULL, 100), 0);
    assert_null(fl_heap_check(h));
    assert_int_equal(fl_heap_free(h, p, 100), 0);
    assert_int_equal(fl_heap_destroy(h), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_apart),
        cmocka_unit_test(the_smallest_blocks_fill_it),
        cmocka_unit_test(threads_share_one),
        cmocka_unit_test(what_is_wrong_is_refused),
    };
    fl_sys_boot();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
