/* Page sizes and the THP mode, read once at boot. */
#include "sys/internal.h"

#include <string.h>
#include <sys/auxv.h>

struct fl_page fl_page = {.base = 4096, .huge = 2u << 20, .shift = 12, .thp = true};

/* Larger ones (512 MiB with 64 KiB base pages) are no unit to grow by: there the default stays. */
static const uint64_t huge_max = (uint64_t)32 << 20;

/* Linux 6.8 has a setting for each size of huge pages. Where that of ours inherits, as it does
 * unless told otherwise, the setting for all counts. Empty: a kernel without huge pages. */
static void read_mode(char *out, size_t size)
{
    char path[96];
    struct fl_text t = fl_text_on(path, sizeof path);

    fl_text_str(&t, "/sys/kernel/mm/transparent_hugepage/hugepages-");
    fl_text_u64(&t, fl_page.huge >> 10);
    fl_text_str(&t, "kB/enabled");
    if (fl_sys.read_file(path, out, size) == 0 && strstr(out, "[inherit]") == NULL) {
        return;
    }
    if (fl_sys.read_file("/sys/kernel/mm/transparent_hugepage/enabled", out, size) != 0) {
        out[0] = '\0';
    }
}

void fl_sys_boot(void)
{
    char text[128];
    uint64_t huge;
    unsigned long base = getauxval(AT_PAGESZ);

    fl_sys_note_confinement();
    if (base != 0) {
        fl_page.base = base;
        fl_page.shift = (unsigned)__builtin_ctzl(base);
    }
    if (fl_sys.read_file("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", text, sizeof text) ==
            0 &&
        fl_parse_after(text, "", &huge) && fl_is_pow2(huge) && huge <= huge_max) {
        fl_page.huge = huge;
    }
    read_mode(text, sizeof text);
    fl_page.thp = text[0] != '\0' && strstr(text, "[never]") == NULL;
    fl_page.always = strstr(text, "[always]") != NULL;
}
