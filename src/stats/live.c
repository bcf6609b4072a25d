/* The live page is filled once, and written no more. */
#include "stats/live.h"

#include <stdatomic.h>
#include <string.h>

_Static_assert(sizeof(struct fl_live_list) == 32 && sizeof(struct fl_live_term) == 16 &&
                   sizeof(struct fl_live_page) == 48 + 32 * FL_LIVE_LISTS + 16 * FL_LIVE_TERMS + 8,
               "a reader of another build finds the same layout");

void fl_live_add(struct fl_live_page *p, struct fl_live_list list, const struct fl_live_term *term,
                 size_t n)
{
    if (p->nlists == FL_LIVE_LISTS || n > FL_LIVE_TERMS - p->nterms) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct fl_live_term *t = &p->term[p->nterms++];
        *t = term[i];
        t->list = (uint8_t)p->nlists;
        t->when = t->when_width == 0 ? FL_LIVE_ALWAYS : t->when;
    }
    p->list[p->nlists++] = list;
}

void fl_live_add_word(struct fl_live_page *p, enum fl_live_figure figure, const volatile void *at,
                      size_t width)
{
    struct fl_live_list list = {.at = fl_live_at(at), .count = 1, .size = (uint32_t)width};
    struct fl_live_term term = {.figure = (uint16_t)figure, .width = (uint8_t)width};

    fl_live_add(p, list, &term, 1);
}

void fl_live_publish(struct fl_live_page *p, const char *version)
{
    p->version = FL_LIVE_VERSION;
    p->size = sizeof *p;
    p->lists = offsetof(struct fl_live_page, list);
    p->terms = offsetof(struct fl_live_page, term);
    memcpy(p->library, version, strnlen(version, sizeof p->library - 1));
    atomic_thread_fence(memory_order_release); /* the magic number comes last */
    memcpy(p->magic, FL_LIVE_MAGIC, sizeof p->magic);
}
