/* The table of samples. Its slots are given out lowest first: few samples are few pages. */
#include "stats/stats.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

enum { WORDS = FL_PROFILE_SLOTS / 64 };

struct sample {
    struct fl_profile_sample head;
    unsigned char stack[FL_PROFILE_STACK];
};
_Static_assert(sizeof(struct sample) == FL_PROFILE_STRIDE, "as readers know it");

struct table {
    struct fl_profile_head head;
    struct sample sample[FL_PROFILE_SLOTS];
    _Atomic uint64_t used[WORDS]; /* bit i % 64 of word i / 64: sample i is taken */
    _Atomic uint32_t count;       /* of those */
    _Atomic uint32_t freed;       /* chain of the peak's that are free by now: a number; 0: none */
    uint32_t next[FL_PROFILE_SLOTS]; /* behind each in that chain. Who puts it there */
};

struct fl_profile_head *fl_profile;

static struct table *table_of_mine(void)
{
    return (struct table *)fl_profile;
}

int fl_profile_begin(uint64_t every)
{
    uintptr_t base;
    size_t len = fl_align_up(sizeof(struct table), fl_page.base);
    int rc = fl_sys.reserve(len, &base);

    if (rc == 0 && (rc = fl_sys.commit((struct fl_range){base, len})) != 0) {
        (void)fl_sys.unmap((struct fl_range){base, len});
    }
    if (rc == 0) {
        (void)fl_sys.advise((struct fl_range){base, len}, FL_ADVICE_NO_HUGE);
        (void)fl_sys.name((struct fl_range){base, len}, "faultless:profile");
        fl_profile = (struct fl_profile_head *)base; /* NOLINT(performance-no-int-to-ptr) */
        *fl_profile = (struct fl_profile_head){.version = FL_PROFILE_VERSION,
                                               .stride = FL_PROFILE_STRIDE,
                                               .pid = (uint32_t)fl_call_pid(),
                                               .every = fl_max(every, 1)};
        memcpy(fl_profile->magic, FL_PROFILE_MAGIC, sizeof fl_profile->magic);
    }
    return rc;
}

/* ---- which blocks ---- */

static _Thread_local struct {
    uint64_t random; /* 0: the thread has made no request yet */
    int64_t left;    /* bytes up to the next point */
} mine;

/* The same at each run, for each of its threads by their order. splitmix64 */
static uint64_t draw(void)
{
    uint64_t z = mine.random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Evenly from 1 to 2 * every: the distance of two points. */
static int64_t gap(uint64_t every)
{
    return 1 + (int64_t)((unsigned __int128)draw() * 2 * every >> 64);
}

/* The first point of a thread is as far off as if it had been at it for ever. */
static void begin_thread(uint64_t every)
{
    static _Atomic uint64_t threads;

    mine.random = 1 + atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) *
                          UINT64_C(0xd1342543de82ef95);
    int64_t a = gap(every), b = gap(every);
    mine.left = a < b ? a : b;
}

/* Bytes that a block of `len` stands for; 0: it is not sampled. */
static uint64_t weigh(uint64_t len, uint64_t every)
{
    fl_assert(len != 0 && every != 0);
    uint64_t weight = 0;

    if (mine.random == 0) {
        begin_thread(every);
    }
    if (len >= every) {
        return len;
    }
    for (mine.left -= (int64_t)len; mine.left < 0; mine.left += gap(every)) {
        weight += every;
    }
    return weight;
}

/* ---- slots ---- */

/* A free one; FL_PROFILE_SLOTS: there is none. */
static unsigned take_slot(struct table *t)
{
    for (unsigned w = 0; w < WORDS; w++) {
        uint64_t had = atomic_load_explicit(&t->used[w], memory_order_relaxed);
        while (had != UINT64_MAX) {
            unsigned bit = (unsigned)__builtin_ctzll(~had);
            if (atomic_compare_exchange_weak(&t->used[w], &had, had | UINT64_C(1) << bit)) {
                atomic_fetch_add_explicit(&t->count, 1, memory_order_relaxed);
                return w * 64 + bit;
            }
        }
    }
    return FL_PROFILE_SLOTS;
}

static void note_highest(struct fl_profile_head *h, unsigned i)
{
    fl_assert(i < FL_PROFILE_SLOTS);
    uint32_t had = __atomic_load_n(&h->slots, __ATOMIC_RELAXED);

    while (had <= i && !__atomic_compare_exchange_n(&h->slots, &had, i + 1, true, __ATOMIC_RELAXED,
                                                    __ATOMIC_RELAXED)) {
    }
}

static void give_slot(struct table *t, unsigned i)
{
    fl_assert(i < FL_PROFILE_SLOTS && (atomic_load(&t->used[i / 64]) >> i % 64 & 1) != 0);
    __atomic_store_n(&t->sample[i].head.state, FL_PROFILE_NONE, __ATOMIC_RELEASE);
    atomic_fetch_sub_explicit(&t->count, 1, memory_order_relaxed);
    (void)atomic_fetch_and(&t->used[i / 64], ~(UINT64_C(1) << i % 64));
}

/* There is a new peak: what was free before is no part of it. */
static void drop_freed(struct table *t)
{
    uint32_t number = atomic_exchange(&t->freed, 0);

    while (number != 0) {
        uint32_t next = t->next[number - 1];
        give_slot(t, number - 1);
        number = next;
    }
}

/* Two threads may do so at once: the peak is then a sample too low, and no more. */
static void add_live(struct table *t, const struct fl_profile_sample *s)
{
    struct fl_profile_head *h = &t->head;
    uint64_t live = __atomic_add_fetch(&h->live, s->weight, __ATOMIC_RELAXED);

    if (live > __atomic_load_n(&h->peak, __ATOMIC_RELAXED)) {
        __atomic_store_n(&h->peak, live, __ATOMIC_RELAXED);
        __atomic_store_n(&h->peak_at, s->number, __ATOMIC_RELAXED);
        drop_freed(t);
    }
}

/* Registers of the caller's caller would do; these are this function's own, with its frame among
 * what is copied. Apart: so that they are consistent with the place. */
static FL_APART void take_stack(struct sample *s)
{
    uint64_t *reg = s->head.reg;

#if defined(__x86_64__)
    __asm__ volatile("movq %%rbx, 0(%0)\n\t"
                     "movq %%rbp, 8(%0)\n\t"
                     "movq %%rsp, 16(%0)\n\t"
                     "leaq 0f(%%rip), %%rax\n\t"
                     "movq %%rax, 24(%0)\n\t"
                     "movq %%r12, 32(%0)\n\t"
                     "movq %%r13, 40(%0)\n\t"
                     "movq %%r14, 48(%0)\n\t"
                     "movq %%r15, 56(%0)\n"
                     "0:"
                     :
                     : "r"(reg)
                     : "rax", "memory");
#elif defined(__aarch64__)
    __asm__ volatile("mov x9, sp\n\t"
                     "adr x10, 0f\n\t"
                     "stp x29, x9, [%0, #8]\n\t"
                     "str x10, [%0, #24]\n"
                     "0:"
                     :
                     : "r"(reg)
                     : "x9", "x10", "memory");
#endif
    s->head.stack_len = (uint32_t)fl_sys_peek(s->stack, reg[FL_PROFILE_SP], sizeof s->stack);
}

uint32_t fl_profile_saw(size_t len)
{
    struct table *t = table_of_mine();
    uint32_t used = atomic_load_explicit(&t->count, memory_order_relaxed);
    uint32_t left = used < FL_PROFILE_SLOTS ? FL_PROFILE_SLOTS - used : 1;
    /* The fuller the table, the fewer. */
    uint64_t weight = weigh(len, t->head.every * FL_PROFILE_SLOTS / left);

    if (weight == 0 || fl_sys_is_confined()) {
        return 0;
    }
    unsigned i = take_slot(t);
    if (i == FL_PROFILE_SLOTS) {
        (void)__atomic_add_fetch(&t->head.lost, 1, __ATOMIC_RELAXED);
        return 0;
    }
    note_highest(&t->head, i);
    struct fl_profile_sample *s = &t->sample[i].head;
    s->number = __atomic_add_fetch(&t->head.samples, 1, __ATOMIC_RELAXED);
    s->len = len;
    s->weight = weight;
    take_stack(&t->sample[i]);
    /* release: a reader that sees the state sees the rest */
    __atomic_store_n(&s->state, FL_PROFILE_LIVE, __ATOMIC_RELEASE);
    add_live(t, s);
    return i + 1;
}

void fl_profile_freed(uint32_t number)
{
    fl_assert(number != 0 && number <= FL_PROFILE_SLOTS);
    struct table *t = table_of_mine();
    struct fl_profile_sample *s = &t->sample[number - 1].head;

    fl_assert(__atomic_load_n(&s->state, __ATOMIC_RELAXED) == FL_PROFILE_LIVE);
    (void)__atomic_sub_fetch(&t->head.live, s->weight, __ATOMIC_RELAXED);
    if (s->number > __atomic_load_n(&t->head.peak_at, __ATOMIC_RELAXED)) {
        give_slot(t, number - 1);
        return;
    }
    __atomic_store_n(&s->state, FL_PROFILE_FREED, __ATOMIC_RELEASE);
    uint32_t first = atomic_load(&t->freed);
    do {
        t->next[number - 1] = first;
    } while (!atomic_compare_exchange_weak(&t->freed, &first, number));
}

/* ---- the file ---- */

enum { MAPS_BYTES = 1 << 20, CODES_MOST = 4096 };

/* Of one writing. Too large for a stack. */
struct writing {
    char maps[MAPS_BYTES];
    struct fl_range code[CODES_MOST]; /* executable, ascending */
    size_t codes, maps_len;
    struct sample sample;
    uint16_t slot[FL_PROFILE_SLOTS];
};

/* Returns what follows the number. */
static const char *read_hex(const char *at, uint64_t *out)
{
    static const char digits[] = "0123456789abcdef";
    const char *digit;

    for (*out = 0; *at != '\0' && (digit = strchr(digits, *at)) != NULL; at++) {
        *out = *out << 4 | (uint64_t)(digit - digits);
    }
    return at;
}

/* Keeps the lines of executable maps alone. proc(5): START-END PERMISSIONS ... */
static void find_code(struct writing *w)
{
    for (const char *line = w->maps, *end; *line != '\0'; line = end) {
        end = line + strcspn(line, "\n");
        end += *end == '\n';
        const char *space = line + strcspn(line, " \n");
        uint64_t from = 0, to = 0;
        if (end - space < 4 || space[3] != 'x' || w->codes == CODES_MOST) {
            continue;
        }
        (void)read_hex(read_hex(line, &from) + 1, &to);
        fl_assert(w->codes < CODES_MOST && to >= from);
        w->code[w->codes++] = (struct fl_range){from, to - from};
        memmove(w->maps + w->maps_len, line, (size_t)(end - line));
        w->maps_len += (size_t)(end - line);
    }
}

static bool is_code(const struct writing *w, uint64_t word)
{
    size_t low = 0, high = w->codes;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (fl_range_end(w->code[middle]) <= word) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < w->codes && word >= w->code[low].base;
}

/* What is neither an address of code nor of the stack is the program's own business. */
static void clear_data(const struct writing *w, struct sample *s)
{
    uint64_t sp = s->head.reg[FL_PROFILE_SP], word;

    for (size_t at = 0; at < s->head.stack_len; at += sizeof word) {
        size_t n = fl_min(sizeof word, s->head.stack_len - at);
        memcpy(&word, s->stack + at, n);
        if (n < sizeof word || (word - sp >= s->head.stack_len && !is_code(w, word))) {
            memset(s->stack + at, 0, n);
        }
    }
}

static int write_sample(const char *path, struct writing *w, unsigned i)
{
    memcpy(&w->sample, &table_of_mine()->sample[i], sizeof w->sample);
    clear_data(w, &w->sample);
    return fl_sys.append_file(path, (const char *)&w->sample,
                              sizeof w->sample.head + w->sample.head.stack_len);
}

/* Other threads may go on meanwhile: a sample that is none any more has no state. */
static int write_all(const char *path, struct writing *w, struct fl_profile_head *head)
{
    head->slots = 0;
    for (unsigned i = 0; i < FL_PROFILE_SLOTS; i++) {
        if ((atomic_load(&table_of_mine()->used[i / 64]) >> i % 64 & 1) != 0) {
            w->slot[head->slots++] = (uint16_t)i;
        }
    }
    int rc = fl_sys.replace_file(path, head, sizeof *head);
    for (unsigned k = 0; k < head->slots && rc == 0; k++) {
        rc = write_sample(path, w, w->slot[k]);
    }
    return rc == 0 ? fl_sys.append_file(path, w->maps, w->maps_len) : rc;
}

int fl_profile_write(const char *path, const struct fl_profile_head *now)
{
    struct fl_range all = {0, fl_align_up(sizeof(struct writing), fl_page.base)};
    struct fl_profile_head head = *fl_profile;
    int rc = fl_sys.reserve(all.len, &all.base);

    if (rc != 0) {
        return rc;
    }
    struct writing *w = (struct writing *)all.base; /* NOLINT(performance-no-int-to-ptr) */
    head.pid = (uint32_t)fl_call_pid();             /* a child of fork has its parent's table */
    head.live_bytes = now->live_bytes;
    head.kept_bytes = now->kept_bytes;
    head.held_bytes = now->held_bytes;
    head.resident_bytes = now->resident_bytes;
    rc = fl_sys.commit(all);
    rc = rc == 0 ? fl_sys.read_file("/proc/self/maps", w->maps, sizeof w->maps) : rc;
    if (rc == 0) {
        find_code(w);
        rc = write_all(path, w, &head);
    }
    (void)fl_sys.unmap(all);
    return rc;
}
