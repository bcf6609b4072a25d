/* Fills the live page: see include/faultless/live.h. Each layer adds where its own figures lie. */
#ifndef FL_STATS_LIVE_H
#define FL_STATS_LIVE_H

#include "faultless/live.h"

#include <stddef.h>

/* A term: the word `field` of an element of that type; others are set beside it. */
#define FL_LIVE_WORD(what, type, field)                                                            \
    .figure = (what), .width = sizeof(((type *)NULL)->field), .offset = offsetof(type, field)

/* Adds a list and its terms, whose `list` is set here, and `when` where its width is 0. What there
 * is no room for is left out.  Threads: boot only. */
void fl_live_add(struct fl_live_page *p, struct fl_live_list list, const struct fl_live_term *term,
                 size_t n);
/* Adds one word: the figure, or a part of it. As above. */
void fl_live_add_word(struct fl_live_page *p, enum fl_live_figure figure, const volatile void *at,
                      size_t width);
/* An address as the page has it. */
static inline uint64_t fl_live_at(const volatile void *p)
{
    return (uintptr_t)p;
}
/* The page is complete: readers take it from here on. */
void fl_live_publish(struct fl_live_page *p, const char *version);

#endif
