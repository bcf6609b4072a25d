/* Programs with one mistake each: victim_hardening MODE BYTES. The block's address is printed
 * first, so that the parent knows the exact line to expect. One that gets through its mistake ends
 * with 0 and says "through", or what it read. */
#include "victim.h"

#include <stdbool.h>

/* NULL under an allocator that lacks them. */
void free_sized(void *p, size_t n) __attribute__((weak));
void free_aligned_sized(void *p, size_t align, size_t n) __attribute__((weak));
/* operator delete(void *, size_t), (void *, size_t, align_val_t) and (void *, align_val_t);
 * operator new(size_t) and (size_t, align_val_t) */
void _ZdlPvm(void *p, size_t n) __attribute__((weak));
void _ZdaPvm(void *p, size_t n) __attribute__((weak));
void _ZdlPvmSt11align_val_t(void *p, size_t n, size_t align) __attribute__((weak));
void _ZdlPvSt11align_val_t(void *p, size_t align) __attribute__((weak));
void *_Znwm(size_t n) __attribute__((weak));
void *_ZnwmSt11align_val_t(size_t n, size_t align) __attribute__((weak));

enum { SECRET = 0x5e, LIVES = 8, PAGE = 4096 };

static size_t bytes;
static volatile char *block;

static void tell(volatile void *p)
{
    printf("%p\n", (void *)(uintptr_t)p);
    fflush(stdout);
}

static void *told(void *p)
{
    tell(p);
    return p;
}

static void make(void)
{
    block = taken(bytes);
    memset((void *)(uintptr_t)block, SECRET, bytes);
    tell(block);
}

static void free_block(void)
{
    free((void *)(uintptr_t)block);
}

static void freed(void)
{
    make();
    free_block();
}

/* With blocks on both sides, from the end of `block` on, as far as the neighbour reaches. */
static void overflow(bool writes)
{
    void *before = malloc(bytes);
    make();
    void *behind = malloc(bytes);
    for (size_t i = bytes; i < bytes + 2 * PAGE; i++) {
        if (writes) {
            block[i] = 1;
        } else {
            (void)block[i];
        }
    }
    CHECK(before != NULL && behind != NULL);
}

MODE_IS(overflow_write, overflow(true))
MODE_IS(overflow_read, overflow(false))

/* Into the few bytes that alignment leaves between a block and its end. */
MODE(overflow_slack)
{
    bytes -= 5;
    make();
    block[bytes] = (char)~block[bytes];
    free_block();
}

MODE(underflow)
{
    bytes -= 100;
    make();
    block[-1] = (char)~block[-1];
    free_block();
}

MODE(used_write)
{
    freed();
    block[bytes / 2] = 1;
}

MODE(used_read)
{
    freed();
    printf("%d\n", block[bytes / 2]);
}

MODE(used_after_realloc)
{
    make();
    CHECK(realloc((void *)(uintptr_t)block, bytes + bytes / 2) != NULL);
    block[0] = 1;
}

MODE(double_now)
{
    freed();
    free_block();
}

MODE(double_later)
{
    void *other[LIVES];

    freed();
    for (size_t i = 0; i < LIVES; i++) {
        CHECK((other[i] = malloc(bytes)) != NULL);
    }
    free_block();
    for (size_t i = 0; i < LIVES; i++) {
        CHECK(other[i] != NULL);
    }
}

/* With no room for it in a thread's cache, and its memory given back. */
MODE(double_uncached)
{
    void *other[16];

    for (size_t i = 0; i < 16; i++) {
        other[i] = taken((i + 2) * MIB);
    }
    freed();
    FREE_ALL(other, 16);
    malloc_trim(0);
    free_block();
}

static void *free_it(void *p)
{
    free(p);
    return NULL;
}

MODE(double_elsewhere)
{
    pthread_t t;

    make();
    CHECK(pthread_create(&t, NULL, free_it, (void *)(uintptr_t)block) == 0);
    pthread_join(t, NULL);
    free_block();
}

static void make_at(ptrdiff_t offset)
{
    make();
    block += offset;
    tell(block);
}

static void free_at(ptrdiff_t offset)
{
    make_at(offset);
    free_block();
}

MODE_IS(interior, free_at(16))
MODE_IS(interior_page, free_at(PAGE))

static void resize(void)
{
    CHECK(realloc((void *)(uintptr_t)block, 2 * bytes) == NULL);
}

static void ask_usable(void)
{
    CHECK(malloc_usable_size((void *)(uintptr_t)block) == 0);
}

MODE(realloc_middle)
{
    make_at(PAGE);
    resize();
}

MODE(realloc_freed)
{
    freed();
    resize();
}

MODE(usable_middle)
{
    make_at(PAGE);
    ask_usable();
}

MODE(usable_freed)
{
    freed();
    ask_usable();
}

/* Foreign ones: what happens is the next allocator's business. */
static char foreign[PAGE] __attribute__((aligned(16)));

MODE(foreign_free)
{
    free(malloc(bytes));
    free(foreign + 16);
}

MODE(foreign_realloc)
{
    free(malloc(bytes));
    CHECK(realloc(foreign + 16, 100) == NULL);
}

MODE(foreign_usable)
{
    size_t header[2] = {0, 0x21 | 2}; /* a mapped chunk to glibc's eyes */
    free(malloc(bytes));
    memcpy(foreign, header, sizeof header);
    printf("%zu\n", malloc_usable_size(foreign + 16));
}

MODE(small_twice)
{
    free(malloc(bytes));
    char *p = malloc(100);
    free(p);
    free(p);
}

MODE(page_start)
{
    bytes -= 100;
    make();
    block = (char *)((uintptr_t)block & ~(uintptr_t)(PAGE - 1));
    tell(block);
    free_block();
}

MODE_IS(never, free_at((ptrdiff_t)(100 * GIB)))

static void need(bool there)
{
    if (!there) {
        printf("absent\n");
        exit(0);
    }
}

MODE(sized)
{
    make();
    need(free_sized != NULL);
    free_sized((void *)(uintptr_t)block, bytes - 8);
}

MODE(sized_of_aligned)
{
    need(free_sized != NULL);
    free_sized(told(aligned_alloc(64, bytes)), bytes);
}

MODE(aligned_sized)
{
    need(free_aligned_sized != NULL);
    free_aligned_sized(told(aligned_alloc(64, bytes)), 128, bytes);
}

MODE(delete_sized)
{
    need(_ZdlPvm != NULL);
    _ZdlPvm(told(_Znwm(bytes)), bytes / 2);
}

MODE(delete_array_sized)
{
    need(_ZdaPvm != NULL);
    _ZdaPvm(told(_Znwm(bytes)), bytes + 1);
}

MODE(delete_aligned_sized)
{
    need(_ZdlPvmSt11align_val_t != NULL);
    _ZdlPvmSt11align_val_t(told(_ZnwmSt11align_val_t(bytes, 64)), bytes + 64, 64);
}

MODE(delete_aligned)
{
    need(_ZdlPvSt11align_val_t != NULL);
    _ZdlPvSt11align_val_t(told(_ZnwmSt11align_val_t(bytes, 64)), PAGE);
}

/* Every one of them as it should be. */
MODE(sized_right)
{
    need(_ZdlPvm != NULL && free_sized != NULL);
    free_sized(malloc(bytes), bytes);
    free_sized(calloc(1, bytes - 3), bytes - 3);
    free_sized(realloc(malloc(bytes), bytes + 77), bytes + 77);
    free_sized(aligned_alloc(16, bytes), bytes);
    free_aligned_sized(aligned_alloc(PAGE, bytes), PAGE, bytes);
    free_aligned_sized(aligned_alloc(MIB, bytes), MIB, bytes);
    _ZdlPvm(_Znwm(bytes - 9), bytes - 9);
    _ZdaPvm(_Znwm(bytes), bytes);
    _ZdlPvmSt11align_val_t(_ZnwmSt11align_val_t(bytes, 64), bytes, 64);
    _ZdlPvSt11align_val_t(_ZnwmSt11align_val_t(bytes, 64), 64);
    free_sized(NULL, 0);
    free_sized(malloc(100), 3); /* the next allocator's: not looked at */
}

/* What a freed block held, seen by the next of its size: how many bytes of it, in the worst of
 * some. */
MODE(stale)
{
    size_t seen = 0;

    for (int i = 0; i < 2; i++) {
        block = taken(bytes);
        size_t found = 0;
        for (size_t at = 0; at < bytes; at++) {
            found += block[at] == SECRET;
        }
        seen = found > seen ? found : seen;
        memset((void *)(uintptr_t)block, SECRET, bytes);
        free_block();
    }
    printf("stale %zu\n", seen);
}

/* The same by reading through the old pointer. */
MODE(stale_after_free)
{
    make();
    free_block();
    size_t found = 0;
    for (size_t at = 0; at < bytes; at++) {
        found += block[at] == SECRET;
    }
    printf("stale %zu\n", found);
}

/* How many bytes of a new block are 0xa5, and how many of calloc's are not zero. */
MODE(junk)
{
    const unsigned char *p = malloc(bytes), *q = calloc(1, bytes);
    size_t filled = 0, wrong = 0;

    CHECK(p != NULL && q != NULL);
    for (size_t i = 0; i < bytes; i++) {
        filled += p[i] == 0xa5;
        wrong += q[i] != 0;
    }
    CHECK(wrong == 0);
    printf("junk %zu\n", filled);
}

/* A mistake of the parent's, found by the child. */
MODE(in_child)
{
    make();
    char *early = malloc(bytes);
    free_block();
    pid_t child = fork();
    if (child == 0) {
        char *p = filled(bytes);
        free(early);
        free_block();
        free(p);
        _exit(0);
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    free(early);
    printf("child %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    exit(0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    bytes = strtoull(argv[2], NULL, 0);
    int rc = run_mode(argv[1]);
    printf("through\n");
    return rc;
}
