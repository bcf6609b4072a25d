/* How much of a coroutine's stack each call takes, by path: says it, and fails above a bar.
 *
 *   victim_stack_depth BAR calls|loans
 *
 * Each call is made on a stack that was painted before, by pointer: where the dynamic linker looks
 * for a function at its first call it takes more of the stack than the function. */
#include "api.h"

#include <stdbool.h>
#include <ucontext.h>

enum { STACK = 256 << 10, SHORT = 64, LONG = 64 << 10, PAINT = 0x5a };

struct call {
    enum {
        NOTHING,
        MALLOC,
        CALLOC,
        REALLOC,
        MEMALIGN,
        POSIX_MEMALIGN,
        ALIGNED_ALLOC,
        USABLE_SIZE,
        FREE
    } kind;
    void *p;
    size_t n;
    void *result;
};

static struct {
    void *(*volatile malloc)(size_t);
    void *(*volatile calloc)(size_t, size_t);
    void *(*volatile realloc)(void *, size_t);
    void *(*volatile memalign)(size_t, size_t);
    int (*volatile posix_memalign)(void **, size_t, size_t);
    void *(*volatile aligned_alloc)(size_t, size_t);
    size_t (*volatile usable_size)(void *);
    void (*volatile free)(void *);
} fn = {malloc, calloc, realloc, memalign, posix_memalign, aligned_alloc, malloc_usable_size, free};

static unsigned char stack[STACK];
static ucontext_t back, there;
static struct call call;
static size_t bar, floor_of_all, deepest;

static void make_call(void)
{
    switch (call.kind) {
    case MALLOC:
        call.result = fn.malloc(call.n);
        break;
    case CALLOC:
        call.result = fn.calloc(1, call.n);
        break;
    case REALLOC:
        call.result = fn.realloc(call.p, call.n);
        break;
    case MEMALIGN:
        call.result = fn.memalign(2 * MIB, call.n);
        break;
    case POSIX_MEMALIGN:
        (void)fn.posix_memalign(&call.result, 2 * MIB, call.n);
        break;
    case ALIGNED_ALLOC:
        call.result = fn.aligned_alloc(2 * MIB, call.n);
        break;
    case USABLE_SIZE:
        call.result = fn.usable_size(call.p) >= call.n ? call.p : NULL;
        break;
    case FREE:
        fn.free(call.p);
        break;
    case NOTHING:
        break;
    }
}

static size_t measure(void)
{
    size_t untouched = 0;

    memset(stack, PAINT, sizeof stack);
    CHECK(getcontext(&there) == 0);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = sizeof stack;
    there.uc_link = &back;
    makecontext(&there, make_call, 0);
    CHECK(swapcontext(&back, &there) == 0);
    while (untouched < sizeof stack && stack[untouched] == PAINT) {
        untouched++;
    }
    return sizeof stack - untouched;
}

static void *on(const char *path, int kind, void *p, size_t n)
{
    call = (struct call){.p = p, .n = n};
    call.kind = kind;
    size_t took = measure() - floor_of_all;
    dprintf(1, "%6zu  %s%s\n", took, path, took > bar ? "  ABOVE THE BAR" : "");
    deepest = took > deepest ? took : deepest;
    CHECK(kind == FREE || call.result != NULL);
    return call.result;
}

static void each_entry_point(const char *where, size_t n)
{
    static const char *const name[] = {[MALLOC] = "malloc",
                                       [CALLOC] = "calloc",
                                       [REALLOC] = "realloc",
                                       [MEMALIGN] = "memalign",
                                       [POSIX_MEMALIGN] = "posix_memalign",
                                       [ALIGNED_ALLOC] = "aligned_alloc"};
    char path[96];

    for (int kind = MALLOC; kind <= ALIGNED_ALLOC; kind++) {
        (void)snprintf(path, sizeof path, "%s, %s of %zu KiB", where, name[kind], n >> 10);
        void *p = on(path, kind, NULL, n);
        stamp(p, n, 1);
        CHECK(on("malloc_usable_size", USABLE_SIZE, p, n) == p);
        (void)snprintf(path, sizeof path, "%s, free of %zu KiB", where, n >> 10);
        (void)on(path, FREE, p, 0);
    }
}

static void *resized(const char *path, void *p, size_t had, size_t n)
{
    stamp(p, had, 3);
    p = on(path, REALLOC, p, n);
    CHECK(is_stamped_part(p, had < n ? had : n, had, 3));
    return p;
}

static void reallocs(void)
{
    static const size_t from[] = {100 * KIB, MIB, 40 * MIB, 200 * MIB};

    for (size_t i = 0; i < sizeof from / sizeof from[0]; i++) {
        size_t n = from[i];
        void *p = fn.malloc(n);
        CHECK(p != NULL);
        p = resized("realloc, shorter", p, n, n - 20 * KIB);
        p = resized("realloc, back in place", p, n - 20 * KIB, n);
        p = resized("realloc, longer", p, n, n + n / 2);
        void *wall = fn.malloc(MIB); /* likely behind it */
        p = resized("realloc, longer than the place", p, n + n / 2, 3 * n);
        p = resized("realloc, to a small block", p, 3 * n, 100);
        p = resized("realloc, to a large block", p, 100, n);
        fn.free(wall);
        (void)on("free", FREE, p, 0);
    }
}

/* Many blocks, and each other one freed: what comes then is carved from pieces. */
static void pieces(void)
{
    enum { MANY = 200 };
    static void *block[MANY];

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            size_t n = (size_t)(64 + (i * 37) % 1500) * KIB;
            block[i] = on("one of many, malloc", round == 1 ? CALLOC : MALLOC, NULL, n);
            stamp(block[i], n, 9);
        }
        for (int i = 0; i < MANY; i += 2) {
            (void)on("one of many, free", FREE, block[i], 0);
        }
        void *p = on("over pieces, malloc", MALLOC, NULL, 60 * MIB);
        memset(p, 1, 60 * MIB);
        (void)on("over pieces, free", FREE, p, 0);
        for (int i = 1; i < MANY; i += 2) {
            (void)on("one of many, free", FREE, block[i], 0);
        }
    }
}

/* The same over and over, as a training step: seen, learned and planned, where plans are on. */
static void steps(void)
{
    enum { STEPS = 60, BLOCKS = 12 };
    static void *block[BLOCKS];

    for (int step = 0; step < STEPS; step++) {
        bool declared = CALL(fl_step_begin)(NULL) == 0;
        for (int i = 0; i < BLOCKS; i++) {
            size_t n = (size_t)(100 + 177 * i) * KIB;
            block[i] = on("of a step, malloc", i % 4 == 3 ? CALLOC : MALLOC, NULL, n);
            stamp(block[i], n, 5);
            if (i % 3 == 2) {
                (void)on("of a step, free", FREE, block[i - 1], 0);
                block[i - 1] = NULL;
            }
        }
        for (int i = 0; i < BLOCKS; i++) {
            (void)on("of a step, free", FREE, block[i], 0);
        }
        CHECK(!declared || CALL(fl_step_end)(NULL) == 0);
    }
}

/* Steps that are served, and beside them requests that no step has: idle pages of the steps' arena
 * serve these. Nothing else is free in the process. */
static void loans(void)
{
    enum { STEPS = 24, BLOCKS = 16 };
    static void *block[BLOCKS];

    for (int step = 0; step < STEPS; step++) {
        CHECK(CALL(fl_step_begin)(NULL) == 0);
        for (int i = 0; i < BLOCKS; i++) {
            size_t n = (size_t)(4 + i) * MIB;
            block[i] = on("of a long step, malloc", MALLOC, NULL, n);
            memset(block[i], 7, n);
        }
        for (int i = 0; i < BLOCKS; i++) {
            (void)on("of a long step, free", FREE, block[i], 0);
        }
        CHECK(CALL(fl_step_end)(NULL) == 0);
        if (step % 4 == 3) {
            size_t n = (size_t)(40 + step) * MIB;
            void *p = on("beside the steps, malloc", MALLOC, NULL, n);
            void *q = on("beside the steps, calloc", CALLOC, NULL, n / 2);
            memset(p, 8, n);
            p = resized("beside the steps, realloc", p, n, n + n / 2);
            (void)on("beside the steps, free", FREE, p, 0);
            (void)on("beside the steps, free", FREE, q, 0);
        }
    }
}

static void *in_new_thread(void *unused)
{
    (void)unused;
    each_entry_point("new thread", LONG);
    return NULL;
}

static void calls(void)
{
    (void)on("small", FREE, on("small", MALLOC, NULL, SHORT), 0);
    each_entry_point("first of the process", LONG);
    each_entry_point("cached", LONG);
    each_entry_point("cached", MIB);
    each_entry_point("window grows", 40 * MIB);
    each_entry_point("window grows", 300 * MIB);
    reallocs();
    pieces();
    steps();
    in_thread(in_new_thread, NULL);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    bar = (size_t)atol(argv[1]);
    call.kind = NOTHING;
    floor_of_all = measure();
    if (strcmp(argv[2], "loans") == 0) {
        loans();
    } else {
        calls();
    }
    dprintf(1, "%6zu  at most\n", deepest);
    return deepest > bar;
}
