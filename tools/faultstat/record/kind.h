/* What a fault was for, and in what mapping. */
#ifndef FAULTLESS_FAULTSTAT_RECORD_KIND_H
#define FAULTLESS_FAULTSTAT_RECORD_KIND_H

#include "faultstat/record/maps.h"

enum fl_kind {
    FL_KIND_ANON,   /* first touch of a base page of memory */
    FL_KIND_HUGE,   /* of a huge page */
    FL_KIND_COPY,   /* write to a page that is shared until then */
    FL_KIND_FILE,   /* page of a file, in the page cache or read */
    FL_KIND_SHARED, /* shared memory, memfd */
    FL_KIND_SWAP,   /* memory that came from swap, or as below */
    FL_KIND_UFFD,   /* where there is no swap: memory that a userfaultfd handler gave, before 6.7 */
    FL_KIND_OTHER,  /* the mapping is not known */
    FL_KIND_ZERO,   /* read of fresh memory: the kernel maps its page of zeros */
    FL_KIND_COUNT,
};

enum fl_span {
    FL_SPAN_SMALL, /* mapping below 128 KiB */
    FL_SPAN_2M,    /* up to 2 MiB */
    FL_SPAN_32M,   /* up to 32 MiB: glibc may serve these from its heap */
    FL_SPAN_256M,
    FL_SPAN_MORE,
    FL_SPAN_HEAP,
    FL_SPAN_STACK,
    FL_SPAN_FILE,
    FL_SPAN_UNKNOWN,
    FL_SPAN_COUNT,
};

/* What is known of one fault. */
struct fl_facts {
    const struct fl_map *map; /* NULL: not known */
    uint64_t page_size;       /* bytes of the page that is there now; 0 = not known */
    uint64_t base_page;       /* bytes of the machine's smallest page */
    bool is_major;
    bool may_swap;    /* the machine has a swap area */
    bool was_present; /* the page was there, and protected */
    bool is_no_page;  /* what is there now is the kernel's zero page */
    bool has_forked;  /* the process shares pages with another one, or did */
    bool is_copied;   /* of a private file mapping: the page is no longer the file's */
};

enum fl_kind fl_kind_of(const struct fl_facts *facts);
enum fl_span fl_span_of(const struct fl_map *map);

extern const char *const fl_kind_name[FL_KIND_COUNT];
extern const char *const fl_span_name[FL_SPAN_COUNT];

#endif
