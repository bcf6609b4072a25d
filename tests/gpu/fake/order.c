/* Clocks, and what nothing orders.
 *
 * An access is kept until the host knows that it is over: what is submitted later has the host's
 * clock, and comes after it. */
#include "gpu/fake/internal.h"

#include <stdlib.h>
#include <string.h>

struct access {
    struct access *next;
    uint64_t lo, hi; /* bytes */
    unsigned who;
    uint32_t when;
    bool write;
    const char *call;
};

struct fake_clock fake_host;

static struct access *accesses;
static unsigned ncomponents = 1;

void fake_clock_join(struct fake_clock *to, const struct fake_clock *from)
{
    for (unsigned i = 0; i < ncomponents; i++) {
        to->at[i] = to->at[i] > from->at[i] ? to->at[i] : from->at[i];
    }
}

unsigned fake_component_new(void)
{
    return ncomponents < FAKE_COMPONENTS ? ncomponents++ : 0;
}

static void drop(struct access **at)
{
    struct access *a = *at;

    *at = a->next;
    free(a);
}

void fake_access(unsigned who, const struct fake_clock *now, uint64_t lo, size_t len, bool write)
{
    uint64_t hi = lo + len;

    for (struct access **at = &accesses; *at != NULL;) {
        struct access *a = *at;
        bool apart = a->hi <= lo || hi <= a->lo, before = now->at[a->who] >= a->when;
        if (!apart && !before && (write || a->write)) {
            fake_race("%s (%s, %u) of %zu bytes at %#llx is not ordered after %s (%s, %u)",
                      write ? "write" : "read", fake_call_now(), who, len, (unsigned long long)lo,
                      a->write ? "write" : "read", a->call, a->who);
        }
        bool known = fake_host.at[a->who] >= a->when;
        /* What comes after this one comes after what the same stream did there before, too. */
        bool covered =
            a->who == who && before && lo <= a->lo && a->hi <= hi && (write || !a->write);
        if (known || covered) {
            drop(at);
        } else {
            at = &a->next;
        }
    }
    if (who != FAKE_HOST) {
        struct access *a = fake_zalloc(sizeof *a);
        *a = (struct access){accesses, lo, hi, who, now->at[who], write, fake_call_now()};
        accesses = a;
    }
}

void fake_access_forget(uint64_t lo, size_t len)
{
    for (struct access **at = &accesses; *at != NULL;) {
        if ((*at)->hi <= lo || lo + len <= (*at)->lo) {
            at = &(*at)->next;
        } else {
            drop(at);
        }
    }
}

void fake_order_reset(void)
{
    while (accesses != NULL) {
        drop(&accesses);
    }
    memset(&fake_host, 0, sizeof fake_host);
    fake_host.at[FAKE_HOST] = 1;
    ncomponents = 1;
}
