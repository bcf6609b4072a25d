/* The table of system calls in debug builds: a call that works on memory, or reads a file, ends the
 * process where the calling thread holds the region's lock. The kernel may take long, and others
 * wait. Where one is made all the same the caller permits it: fl_lock_permit_calls. */
#include "sys/internal.h"

#if FL_CHECK_LEVEL >= 2
#define CHECKED(slot, params, args)                                                                \
    static int checked_##slot params                                                               \
    {                                                                                              \
        fl_lock_check_call(#slot);                                                                 \
        return fl_sys_linux.slot args;                                                             \
    }

CHECKED(reserve, (size_t len, uintptr_t *out), (len, out))
CHECKED(map_at, (struct fl_range r), (r))
CHECKED(map_hugetlb, (struct fl_range r, size_t page), (r, page))
CHECKED(unmap, (struct fl_range r), (r))
CHECKED(commit, (struct fl_range r), (r))
CHECKED(decommit, (struct fl_range r), (r))
CHECKED(protect, (struct fl_range r), (r))
CHECKED(advise, (struct fl_range r, enum fl_sys_advice advice), (r, advice))
CHECKED(populate, (struct fl_range r), (r))
CHECKED(populate_shared, (struct fl_range r, unsigned helpers), (r, helpers))
CHECKED(remap, (struct fl_range from, uintptr_t to), (from, to))
CHECKED(move_begin, (struct fl_range to, int *out), (to, out))
CHECKED(move_pages, (int fd, struct fl_range from, uintptr_t to, size_t *out), (fd, from, to, out))
CHECKED(touch_arm, (int fd, struct fl_range r, bool on), (fd, r, on))
CHECKED(lazy_free, (struct fl_range r), (r))
CHECKED(resident, (struct fl_range r, size_t *out), (r, out))
CHECKED(find_split, (struct fl_range r, struct fl_range *out), (r, out))
CHECKED(survey, (struct fl_range r, size_t *present, size_t *own), (r, present, own))
CHECKED(touched, (struct fl_range r, struct fl_range out[], unsigned most), (r, out, most))
CHECKED(huge, (struct fl_range r, struct fl_range out[], unsigned most), (r, out, most))
CHECKED(filled, (struct fl_range r, size_t step, unsigned most, struct fl_filled *out),
        (r, step, most, out))
CHECKED(present, (struct fl_range r, size_t *out), (r, out))
CHECKED(name, (struct fl_range r, const char *name), (r, name))
CHECKED(read_file, (const char *path, char *buf, size_t size), (path, buf, size))
CHECKED(append_file, (const char *path, const char *text, size_t len), (path, text, len))
CHECKED(replace_file, (const char *path, const void *data, size_t len), (path, data, len))

void fl_sys_check_calls(void)
{
    fl_sys.reserve = checked_reserve;
    fl_sys.map_at = checked_map_at;
    fl_sys.map_hugetlb = checked_map_hugetlb;
    fl_sys.unmap = checked_unmap;
    fl_sys.commit = checked_commit;
    fl_sys.decommit = checked_decommit;
    fl_sys.protect = checked_protect;
    fl_sys.advise = checked_advise;
    fl_sys.populate = checked_populate;
    fl_sys.populate_shared = checked_populate_shared;
    fl_sys.remap = checked_remap;
    fl_sys.move_begin = checked_move_begin;
    fl_sys.move_pages = checked_move_pages;
    fl_sys.touch_arm = checked_touch_arm;
    fl_sys.lazy_free = checked_lazy_free;
    fl_sys.resident = checked_resident;
    fl_sys.find_split = checked_find_split;
    fl_sys.survey = checked_survey;
    fl_sys.touched = checked_touched;
    fl_sys.huge = checked_huge;
    fl_sys.filled = checked_filled;
    fl_sys.present = checked_present;
    fl_sys.name = checked_name;
    fl_sys.read_file = checked_read_file;
    fl_sys.append_file = checked_append_file;
    fl_sys.replace_file = checked_replace_file;
}
#else
void fl_sys_check_calls(void)
{
}
#endif
