/* Blocks whose contents follow from their seed, and the table of those that all threads share.
 *
 * State: the table. Lock: its own mutex, held for a few instructions; a slot that is busy belongs
 * to one thread. */
#include "mix.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = sizeof(uint64_t) };
enum slot_state { EMPTY, BUSY, READY };

static struct {
    pthread_mutex_t lock;
    struct {
        enum slot_state state;
        struct mix_block block;
    } slot[MIX_SLOTS];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

atomic_size_t mix_live;

/* xorshift64* */
uint64_t mix_draw(uint64_t *random, uint64_t below)
{
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    return (*random * UINT64_C(2685821657736338717) >> 11) % below;
}

/* An octave, then a length in it. */
size_t mix_draw_len(uint64_t *random, size_t low, size_t high)
{
    int octaves = 1;
    while (octaves < 40 && low << octaves < high) {
        octaves++;
    }
    size_t octave = low << mix_draw(random, (uint64_t)octaves);
    size_t len = octave + mix_draw(random, octave);
    return len < high ? len : high;
}

/* Word `i` of a block with that seed; the contents are these words, and the last one's first
 * bytes. */
static uint64_t word(uint64_t seed, size_t i)
{
    return seed + i * UINT64_C(0x9e3779b97f4a7c15);
}

static void fill(struct mix_block *b, size_t from)
{
    size_t words = b->len / WORD;
    uint64_t *to = (uint64_t *)(void *)b->base;
    for (size_t i = from / WORD; i < words; i++) {
        to[i] = word(b->seed, i);
    }
    uint64_t last = word(b->seed, words);
    memcpy(b->base + words * WORD, &last, b->len % WORD);
}

/* The first `len` bytes are as written. */
static bool is_intact(const struct mix_block *b, size_t len)
{
    size_t words = len / WORD;
    const uint64_t *from = (const uint64_t *)(const void *)b->base;
    uint64_t differs = 0;
    for (size_t i = 0; i < words; i++) {
        differs |= from[i] ^ word(b->seed, i);
    }
    uint64_t last = word(b->seed, words);
    return differs == 0 && memcmp(b->base + words * WORD, &last, len % WORD) == 0;
}

static bool is_zero(const struct mix_block *b)
{
    const uint64_t *from = (const uint64_t *)(const void *)b->base;
    uint64_t any = 0;
    for (size_t i = 0; i < b->len / WORD; i++) {
        any |= from[i];
    }
    for (size_t i = b->len / WORD * WORD; i < b->len; i++) {
        any |= b->base[i];
    }
    return any == 0;
}

bool mix_take(struct mix_block *b, size_t len, uint64_t seed)
{
    enum mix_how how = (enum mix_how)(seed % MIX_HOWS);
    size_t align = (size_t)64 << (seed >> 8) % 17; /* 64 bytes to 4 MiB */
    void *base = NULL;
    if (how == MIX_MALLOC) {
        base = malloc(len);
    } else if (how == MIX_CALLOC) {
        base = calloc(len / 16, 16);
        len = len / 16 * 16;
    } else if (how == MIX_MEMALIGN) {
        base = posix_memalign(&base, align, len) == 0 ? base : NULL;
    } else {
        base = aligned_alloc(align, len);
    }
    *b = (struct mix_block){.base = base, .len = len, .seed = seed};
    if (base == NULL) {
        mix_error("no memory for %zu bytes, way %d", len, how);
        return false;
    }
    if (how >= MIX_MEMALIGN && (uintptr_t)base % align != 0) {
        mix_error("%p is not aligned to %zu", base, align);
    }
    if (how == MIX_CALLOC && !is_zero(b)) {
        mix_error("calloc of %zu bytes is not zero", len);
    }
    fill(b, 0);
    return true;
}

bool mix_resize(struct mix_block *b, size_t len)
{
    size_t kept = b->len < len ? b->len : len;
    unsigned char *base = realloc(b->base, len);
    if (base == NULL) {
        mix_error("no memory for realloc from %zu to %zu bytes", b->len, len);
        return false;
    }
    b->base = base;
    b->len = len;
    if (!is_intact(b, kept)) {
        mix_error("realloc to %zu bytes lost what was in the first %zu", len, kept);
        fill(b, 0);
    }
    fill(b, kept);
    return true;
}

void mix_rewrite(struct mix_block *b, uint64_t seed)
{
    b->seed = seed;
    fill(b, 0);
}

void mix_check(const struct mix_block *b)
{
    if (!is_intact(b, b->len)) {
        mix_error("%zu bytes at %p are not what was written", b->len, (void *)b->base);
    }
}

void mix_put(struct mix_block *b)
{
    mix_check(b);
    free(b->base);
    *b = (struct mix_block){0};
}

/* A twelfth is left for what outlives epochs. */
bool mix_reserve(size_t len)
{
    size_t cap = ((size_t)mix_options.live_mib << 20) / 12 * 11;
    size_t live = atomic_fetch_add(&mix_live, len) + len;
    if (live <= cap) {
        size_t peak = atomic_load(&mix_epoch.peak_live);
        while (live > peak && !atomic_compare_exchange_weak(&mix_epoch.peak_live, &peak, live)) {
        }
        return true;
    }
    atomic_fetch_sub(&mix_live, len);
    return false;
}

void mix_lock_table(void)
{
    pthread_mutex_lock(&table.lock);
}

void mix_unlock_table(void)
{
    pthread_mutex_unlock(&table.lock);
}

static bool claim(int i, enum slot_state state)
{
    mix_lock_table();
    bool is_mine = table.slot[i].state == state;
    if (is_mine) {
        table.slot[i].state = BUSY;
    }
    mix_unlock_table();
    return is_mine;
}

static void publish(int i, enum slot_state state)
{
    mix_lock_table();
    table.slot[i].state = state;
    mix_unlock_table();
}

static void put_slot(int i)
{
    size_t len = table.slot[i].block.len;
    mix_put(&table.slot[i].block);
    atomic_fetch_sub(&mix_live, len);
    publish(i, EMPTY);
}

/* Room for `len` bytes, by freeing blocks of others where need be. */
static bool make_room(size_t len, uint64_t *random)
{
    for (int tries = 0; tries < MIX_SLOTS; tries++) {
        if (mix_reserve(len)) {
            return true;
        }
        int victim = (int)mix_draw(random, MIX_SLOTS);
        if (claim(victim, READY)) {
            put_slot(victim);
        }
    }
    return false;
}

static void take_slot(int i, size_t len, uint64_t *random)
{
    struct mix_block *b = &table.slot[i].block;
    bool is_taken = make_room(len, random) && mix_take(b, len, mix_draw(random, UINT64_MAX));
    if (is_taken) {
        atomic_fetch_sub(&mix_live, len - b->len);
    }
    publish(i, is_taken ? READY : EMPTY);
}

/* Also below the threshold from which faultless serves: a block moves from one allocator to the
 * other and back. */
static void resize_slot(int i, size_t high, uint64_t *random)
{
    struct mix_block *b = &table.slot[i].block;
    size_t old = b->len;
    size_t len = mix_draw(random, 2) == 0 ? mix_draw_len(random, 4096, high)
                                          : old / 2 + mix_draw(random, old + old / 2);
    if (len > old && !mix_reserve(len - old)) {
        len = old / 2 + 1;
    }
    if (mix_resize(b, len) && len < old) {
        atomic_fetch_sub(&mix_live, old - len);
    }
    publish(i, READY);
}

static size_t longest(void)
{
    size_t high = ((size_t)mix_options.live_mib << 20) / 6;
    return high < (size_t)256 << 20 ? high : (size_t)256 << 20;
}

/* One operation on a slot at random: an empty one is filled; a block is freed, resized or written
 * anew, whichever thread took it. */
void mix_operate(struct mix_worker *w)
{
    int i = (int)mix_draw(&w->random, MIX_SLOTS);
    atomic_fetch_add(&mix_epoch.operations, 1);
    if (claim(i, EMPTY)) {
        take_slot(i, mix_draw_len(&w->random, 65536, longest()), &w->random);
        return;
    }
    if (!claim(i, READY)) {
        return;
    }
    uint64_t dice = mix_draw(&w->random, 100);
    if (dice < 45) {
        put_slot(i);
    } else if (dice < 75) {
        resize_slot(i, longest(), &w->random);
    } else {
        mix_check(&table.slot[i].block);
        mix_rewrite(&table.slot[i].block, mix_draw(&w->random, UINT64_MAX));
        publish(i, READY);
    }
}

/* Its bytes count as live already. */
void mix_hand_over(struct mix_block *b, uint64_t *random)
{
    int first = (int)mix_draw(random, MIX_SLOTS);
    for (int n = 0; n < MIX_SLOTS; n++) {
        int i = (first + n) % MIX_SLOTS;
        if (claim(i, EMPTY)) {
            table.slot[i].block = *b;
            publish(i, READY);
            return;
        }
    }
    atomic_fetch_sub(&mix_live, b->len);
    mix_put(b);
}

void mix_drain(void)
{
    for (int i = 0; i < MIX_SLOTS; i++) {
        if (claim(i, READY)) {
            put_slot(i);
        }
    }
}

/* In a forked child: the caller held the lock when it forked, and no other thread is there. */
void mix_check_table(void)
{
    for (int i = 0; i < MIX_SLOTS; i++) {
        if (table.slot[i].state == READY) {
            mix_check(&table.slot[i].block);
        }
    }
}

void mix_free_some(int n)
{
    for (int i = 0; i < MIX_SLOTS && n > 0; i++) {
        if (claim(i, READY)) {
            put_slot(i);
            n--;
        }
    }
}
