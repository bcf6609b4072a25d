#include "faultstat/record/kind.h"

#include <stddef.h>

const char *const fl_kind_name[FL_KIND_COUNT] = {
    [FL_KIND_ANON] = "anonymous 4 KiB", [FL_KIND_HUGE] = "anonymous huge",
    [FL_KIND_COPY] = "copy on write",   [FL_KIND_FILE] = "file",
    [FL_KIND_SHARED] = "shared memory", [FL_KIND_SWAP] = "swap or userfaultfd",
    [FL_KIND_UFFD] = "userfaultfd",     [FL_KIND_OTHER] = "unknown",
    [FL_KIND_ZERO] = "zero page",
};

const char *const fl_span_name[FL_SPAN_COUNT] = {
    [FL_SPAN_SMALL] = "< 128 KiB", [FL_SPAN_2M] = "<= 2 MiB",    [FL_SPAN_32M] = "<= 32 MiB",
    [FL_SPAN_256M] = "<= 256 MiB", [FL_SPAN_MORE] = "> 256 MiB", [FL_SPAN_HEAP] = "brk heap",
    [FL_SPAN_STACK] = "stack",     [FL_SPAN_FILE] = "file",      [FL_SPAN_UNKNOWN] = "unknown",
};

enum fl_kind fl_kind_of(const struct fl_facts *facts)
{
    if (facts->map == NULL) {
        return FL_KIND_OTHER;
    }
    if (facts->map->kind == FL_MAP_FILE) {
        return facts->is_copied || facts->was_present ? FL_KIND_COPY : FL_KIND_FILE;
    }
    if (facts->map->kind == FL_MAP_SHARED) {
        return FL_KIND_SHARED;
    }
    if (facts->is_major) {
        return facts->may_swap ? FL_KIND_SWAP : FL_KIND_UFFD;
    }
    if (facts->is_no_page) {
        return FL_KIND_ZERO;
    }
    if (facts->was_present && facts->has_forked) { /* else it was the zero page */
        return FL_KIND_COPY;
    }
    return facts->page_size > facts->base_page ? FL_KIND_HUGE : FL_KIND_ANON;
}

enum fl_span fl_span_of(const struct fl_map *map)
{
    static const uint64_t kib = 1 << 10;
    if (map == NULL) {
        return FL_SPAN_UNKNOWN;
    }
    switch (map->kind) {
    case FL_MAP_HEAP:
        return FL_SPAN_HEAP;
    case FL_MAP_STACK:
        return FL_SPAN_STACK;
    case FL_MAP_FILE:
        return FL_SPAN_FILE;
    default:
        break;
    }
    uint64_t len = map->whole;
    return len < 128 * kib       ? FL_SPAN_SMALL
           : len <= 2048 * kib   ? FL_SPAN_2M
           : len <= 32768 * kib  ? FL_SPAN_32M
           : len <= 262144 * kib ? FL_SPAN_256M
                                 : FL_SPAN_MORE;
}
