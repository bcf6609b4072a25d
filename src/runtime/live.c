/* The live page, and the note in the library's file that leads to it. */
#include "runtime/runtime.h"

#include "faultless/faultless.h"

#include <stdatomic.h>
#include <string.h>

/* Named by the note below. Written at boot alone. */
extern FL_HIDDEN struct fl_live_page fl_live_page;
struct fl_live_page fl_live_page;

/* Name size, contents' size, type, name, contents: elf(5), Notes. The linker puts it into a segment
 * of the library's first page, PT_NOTE. */
_Static_assert(FL_LIVE_NOTE == 0x4c46, "as the note says");
__asm__(".pushsection .note.faultless, \"a\", %note\n"
        ".balign 4\n"
        ".long 10, 8, 0x4c46\n"
        ".asciz \"faultless\"\n"
        ".balign 4\n"
        ".quad fl_live_page - .\n"
        ".popsection");

static void add_own(struct fl_live_page *p)
{
    fl_live_add_word(p, FL_LIVE_ACTIVE, &fl_runtime.active, sizeof fl_runtime.active);
    fl_live_add_word(p, FL_LIVE_SHADOWED, &fl_runtime.shadowed_by, sizeof fl_runtime.shadowed_by);
    fl_live_add(
        p,
        (struct fl_live_list){.at = fl_live_at(&fl_home_word),
                              .size = sizeof *fl_home_word,
                              .shape = FL_LIVE_CHAIN,
                              .next = FL_LIVE_LAST},
        (const struct fl_live_term[]){{.figure = FL_LIVE_HOME, .width = sizeof *fl_home_word}}, 1);
}

void fl_live_start_shadowed(void)
{
    add_own(&fl_live_page);
    fl_live_publish(&fl_live_page, fl_version());
}

void fl_live_start(void)
{
    struct fl_live_page *p = &fl_live_page;

    memset(p->magic, 0, sizeof p->magic); /* what fl_live_start_shadowed made is void */
    atomic_thread_fence(memory_order_release);
    p->nlists = p->nterms = 0;
    add_own(p);
    fl_region_live(&fl_runtime.region, p);
    fl_plan_live(p);
    p->profile = fl_live_at(fl_profile);
    fl_live_publish(p, fl_version());
}
