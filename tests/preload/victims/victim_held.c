/* KIB KEEP ORDER HOW: 256 MiB of blocks of KIB, or of up to twice that where ORDER is random; one
 * of KEEP is kept. What is in memory afterwards, at once (HOW is trim) or when it has aged (decay),
 * is little more than what is kept; and all of it works as before. */
#include "await.h"
#include "victim.h"

enum { MOST = 8192 };

static struct block {
    char *p;
    size_t len;
} block[MOST];
static size_t blocks, live;
static uint64_t dice = 88172645463325252;

static void take_all(size_t len, int random)
{
    for (size_t sum = 0; sum < 256 * MIB && blocks < MOST; blocks++) {
        struct block *b = &block[blocks];
        b->len = random ? len + next_random(&dice) % len : len;
        b->p = written(b->len, blocks);
        sum += b->len;
    }
}

static void keep_one_of(size_t keep, int random)
{
    for (size_t i = 0; i < blocks; i++) {
        if ((random ? next_random(&dice) >> 20 : i) % keep == 0) {
            live += block[i].len;
        } else {
            free(block[i].p);
            block[i].p = NULL;
        }
    }
}

static void check_all(void)
{
    for (size_t i = 0; i < blocks; i++) {
        CHECK(block[i].p == NULL || is_stamped(block[i].p, block[i].len, i));
    }
}

static size_t allowed(void)
{
    return live + live / 20 + 16 * MIB;
}

/* Without a worker it is requests that do its work. */
static void wait_for_age(void)
{
    while (rss_kib() * KIB > allowed()) {
        fl_between_looks();
        free(malloc(100 * KIB));
    }
}

/* Every third hole gets a block again. */
static void use_again(size_t len)
{
    for (size_t i = 0; i < blocks; i += 3) {
        if (block[i].p != NULL) {
            continue;
        }
        block[i] = (struct block){calloc(1, len), len};
        CHECK(block[i].p != NULL);
        for (size_t at = 0; at < len; at += 256) {
            CHECK(block[i].p[at] == 0);
        }
        stamp(block[i].p, len, i);
    }
}

static void grow_and_shrink(void)
{
    for (size_t i = 0; i < blocks; i += 7) {
        if (block[i].p != NULL) {
            size_t len = i % 2 == 0 ? block[i].len + 96 * KIB : block[i].len / 2;
            char *p = realloc(block[i].p, len);
            CHECK(p != NULL &&
                  is_stamped_part(p, len < block[i].len ? len : block[i].len, block[i].len, i));
            stamp(p, len, i);
            block[i] = (struct block){p, len};
        }
    }
}

static void try_a_child(size_t len)
{
    IN_CHILD
    {
        check_all();
        use_again(len);
        check_all();
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 5);
    size_t len = strtoul(argv[1], NULL, 10) * KIB, keep = strtoul(argv[2], NULL, 10);
    int random = strcmp(argv[3], "random") == 0;

    take_all(len, random);
    keep_one_of(keep, random);
    if (strcmp(argv[4], "trim") == 0) {
        malloc_trim(0);
    } else {
        wait_for_age();
    }
    size_t held = rss_kib() * KIB;
    printf("live %zu held %zu allowed %zu MiB\n", live / MIB, held / MIB, allowed() / MIB);
    CHECK(held <= allowed());
    check_all();
    try_a_child(len);
    use_again(len);
    check_all();
    grow_and_shrink();
    check_all();
    return 0;
}
