/* Page sizes and the THP mode, read once at boot.
 *
 * `huge` is what the region grows by, and what one touched byte may cost: 2 MiB, or less where the
 * kernel's huge page is smaller. Where it is larger (32 MiB with base pages of 16 KiB, 512 MiB with
 * 64 KiB), it is never asked for: memory is in base pages, or in folios of 2 MiB if the
 * administrator has switched these on and all larger ones off. docs/limits.md has the reasons. */
#include "sys/internal.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

#ifndef PR_THP_DISABLE_EXCEPT_ADVISED
#define PR_THP_DISABLE_EXCEPT_ADVISED (1 << 1)
#endif

#define THP_FOLDER "/sys/kernel/mm/transparent_hugepage/"

enum { HUGE_MOST = 2 * FL_MIB };

struct fl_page fl_page = {.base = 4096, .huge = HUGE_MOST, .shift = 12, .thp = true};

static bool keeps_huge; /* what is not advised has none */

enum mode { NEVER, MADVISE, ALWAYS };

/* Of a file whose chosen word is in brackets. `inherited`: what "inherit" means in it. */
static enum mode mode_in(const char *path, enum mode inherited, enum mode missing)
{
    char text[128];

    if (fl_sys.read_file(path, text, sizeof text) != 0) {
        return missing;
    }
    return strstr(text, "[always]") != NULL    ? ALWAYS
           : strstr(text, "[inherit]") != NULL ? inherited
           : strstr(text, "[madvise]") != NULL ? MADVISE
                                               : NEVER;
}

/* Of folios of that size, which Linux 6.8 has a setting for. `missing`: without one. */
static enum mode mode_of(uint64_t size, enum mode all, enum mode missing)
{
    char path[128];
    struct fl_text t = fl_text_on(path, sizeof path);

    fl_text_str(&t, THP_FOLDER "hugepages-");
    fl_text_u64(&t, size / FL_KIB);
    fl_text_str(&t, "kB/enabled");
    return mode_in(path, all, missing);
}

/* Bytes of a PMD-sized huge page; 0: the kernel does not say. */
static uint64_t read_huge(void)
{
    char text[64];
    uint64_t huge;
    bool said = fl_sys.read_file(THP_FOLDER "hpage_pmd_size", text, sizeof text) == 0 &&
                fl_parse_after(text, "", &huge) && fl_is_pow2(huge);

    return said ? huge : 0;
}

/* What advised ranges get: huge pages of `fl_page.huge` bytes, and none that are larger. */
static enum mode mode_of_ours(uint64_t largest, enum mode all)
{
    if (largest <= fl_page.huge) {
        return mode_of(fl_page.huge, all, all);
    }
    enum mode ours = mode_of(fl_page.huge, all, NEVER);
    for (uint64_t size = 2 * fl_page.huge; size <= largest; size *= 2) {
        ours = mode_of(size, all, NEVER) != NEVER ? NEVER : ours;
    }
    return ours;
}

static void note_base(void)
{
    unsigned long base = fl_sys_auxval(AT_PAGESZ);

    if (base != 0) {
        fl_page.base = base;
        fl_page.shift = (unsigned)__builtin_ctzl(base);
    }
}

void fl_sys_load(void)
{
    fl_sys_note_confinement();
    note_base();
}

int fl_sys_keep_huge(void)
{
    long rc = fl_call(SYS_prctl, PR_SET_THP_DISABLE, 1, PR_THP_DISABLE_EXCEPT_ADVISED);

    keeps_huge = rc == 0;
    return (int)rc;
}

void fl_sys_boot(void)
{
    note_base();
    uint64_t largest = read_huge();
    if (largest != 0) {
        fl_page.huge = largest < HUGE_MOST ? largest : HUGE_MOST;
    }
    enum mode ours = mode_of_ours(largest, mode_in(THP_FOLDER "enabled", NEVER, NEVER));
    fl_page.thp = ours != NEVER;
    fl_page.always = ours == ALWAYS && !keeps_huge;
}
