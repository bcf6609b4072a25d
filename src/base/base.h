/* Pure helpers: ranges, rounding, text building, number parsing. No system call, no global, any
 * context.
 *
 * Everything here may run before libc is initialised and inside signal handlers. */
#ifndef FL_BASE_BASE_H
#define FL_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FL_LIKELY(x) __builtin_expect(!!(x), 1)
#define FL_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define FL_CACHE_LINE 64 /* bytes; x86-64 and arm64 */
#define FL_COLD __attribute__((cold, noinline))
/* A variable that each process touches at its start: these lie together, for each page of them is a
 * fault for a process that has no large requests. */
#define FL_AT_START __attribute__((section(".data.start")))
/* So that what is usual needs no stack frame: the rest is called from its end. */
#define FL_APART __attribute__((noinline))
#define FL_INLINE inline __attribute__((always_inline))
#define FL_HIDDEN __attribute__((visibility("hidden"))) /* of data: reached without a table */

/* What holds at this point, for the reader, and for debug, sanitizer and fuzz builds, which end the
 * process where it does not. Nothing in release builds: `cond` has no effects. */
#if FL_CHECK_LEVEL >= 2 || defined(__SANITIZE_THREAD__)
#define fl_assert(cond) (FL_LIKELY(cond) ? (void)0 : fl_assert_failed(#cond, __FILE__, __LINE__))
#else
#define fl_assert(cond) ((void)sizeof((cond) ? 1 : 0))
#endif
_Noreturn void fl_assert_failed(const char *cond, const char *file, unsigned line);

enum { FL_KIB = 1 << 10, FL_MIB = 1 << 20 };

/* Half-open span of addresses [base, base + len). len is bytes; an empty range has len 0 and any
 * base. */
struct fl_range {
    uintptr_t base;
    size_t len;
};

/* `align` is a power of two in all three. fl_align_up may wrap: callers bound `v` first. */
static inline bool fl_is_pow2(size_t v)
{
    return v != 0 && (v & (v - 1)) == 0;
}

static inline uintptr_t fl_align_down(uintptr_t v, size_t align)
{
    return v & ~(uintptr_t)(align - 1);
}

static inline uintptr_t fl_align_up(uintptr_t v, size_t align)
{
    return (v + align - 1) & ~(uintptr_t)(align - 1);
}

static inline uintptr_t fl_range_end(struct fl_range r)
{
    return r.base + r.len;
}

static inline size_t fl_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t fl_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The whole `align`-sized units inside `r`; len 0 when there is none. */
struct fl_range fl_range_inner(struct fl_range r, size_t align);
/* What is in both; len 0 when nothing is. */
struct fl_range fl_range_common(struct fl_range a, struct fl_range b);
/* Of two ranges one: both, where they touch, else the longer. */
struct fl_range fl_range_join(struct fl_range a, struct fl_range b);

/* Scratch of the caller's, carved from its start in whole cache lines. A callee gets it by value:
 * what it carves is free again when it returns. `at` is aligned to a cache line. */
struct fl_bump {
    char *at, *end;
    bool is_short; /* something did not fit: it is NULL, and so is all that is carved after it */
};

void *fl_bump_carve(struct fl_bump *b, size_t count, size_t width);
/* Bytes that fl_bump_carve takes for it. */
size_t fl_bump_cost(size_t count, size_t width);

/* Sorts `order` by key[order[i]], ascending and stable, in fl_sort_cost(n) bytes of `room`. False:
 * it has less. Cost: 2 ns an element and byte of the key in which any two differ. */
bool fl_sort(uint32_t *order, const uint64_t *key, size_t n, struct fl_bump room);
size_t fl_sort_cost(size_t n);

/* A line of text under construction in caller memory: cut, never overrun. Always NUL-terminated. */
struct fl_text {
    char *buf;
    size_t size; /* bytes of buf, at least 1 */
    size_t len;  /* bytes used, without the NUL */
};

struct fl_text fl_text_on(char *buf, size_t size);
void fl_text_str(struct fl_text *t, const char *s);
void fl_text_u64(struct fl_text *t, uint64_t v);
void fl_text_hex(struct fl_text *t, uint64_t v);
/* Bytes with the largest binary unit that divides them: 65536 -> 64K, 4097 -> 4097. */
void fl_text_size(struct fl_text *t, uint64_t bytes);
/* Without zeros behind: 920000 -> 0.92. */
void fl_text_millionths(struct fl_text *t, uint64_t v);

/* Decimal number with an optional K, M, G or T behind it, or that with B or iB; all are binary.
 * Returns 0; -EINVAL when it is not a number of that form; -ERANGE above UINT64_MAX. */
int fl_parse_size(const char *s, uint64_t *out);

/* Plain decimal number. Errors as fl_parse_size. */
int fl_parse_u64(const char *s, uint64_t *out);

/* Decimal number such as 1, 0.92 or .5, in millionths. Further digits are dropped, but what is more
 * than 0 stays so. Errors as fl_parse_size. */
int fl_parse_millionths(const char *s, uint64_t *out);

/* 1 for 1, on, yes, true; 0 for 0, off, no, false and the empty string; -EINVAL else. */
int fl_parse_bool(const char *s);

/* Number that follows the first occurrence of `key` in `text` (spaces skipped), as in
 * /proc/meminfo. Returns false when the key is absent or no digit follows. */
bool fl_parse_after(const char *text, const char *key, uint64_t *out);

/* The next piece of a list such as "0-3,8", which ends with the text or its line: first and last
 * number, and `*s` moved to the piece after it. Returns 0; -ENOENT at the end; -EINVAL where there
 * is no such list (a comma before the end is none). */
int fl_parse_span(const char **s, uint64_t *first, uint64_t *last);

/* How many single-letter edits turn `a` into `b`; at most 64 letters of each are looked at. */
unsigned fl_edit_distance(const char *a, const char *b);

#endif
