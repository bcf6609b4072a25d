#include "owned.h"

uint64_t owned_seed;
long (*owned_operations)(void);

_Noreturn void owned_wrong(const struct owned *b, const char *when, size_t at, uint64_t has)
{
    unsigned owner = (unsigned)(b->mark >> OWNED_SERIAL_BITS);
    uint64_t number = b->mark & ((UINT64_C(1) << OWNED_SERIAL_BITS) - 1);
    uint64_t other = has ^ owned_mix((uintptr_t)b->p + at);

    dprintf(
        2,
        "seed %llu, operation %ld: %s: block %llu of owner %u, %zu bytes at %p: at +%zu is %#llx, ",
        (unsigned long long)owned_seed, owned_operations(), when, (unsigned long long)number, owner,
        b->n, (void *)b->p, at, (unsigned long long)has);
    if (other >> OWNED_SERIAL_BITS < 256) {
        dprintf(2, "written by owner %u as its block %llu\n",
                (unsigned)(other >> OWNED_SERIAL_BITS),
                (unsigned long long)(other & ((UINT64_C(1) << OWNED_SERIAL_BITS) - 1)));
    } else {
        dprintf(2, "which was not marked\n");
    }
    _exit(1);
}
