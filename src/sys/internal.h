/* Shared by the files of sys/ alone: the slots of the real table that have a file of their own. */
#ifndef FL_SYS_INTERNAL_H
#define FL_SYS_INTERNAL_H

#include "sys/sys.h"

#include <time.h>

/* linux.c: all of it; 0, or -errno. */
int fl_linux_write(int fd, const char *text, size_t len);

/* clone(2) by glibc's own name, past the one that preload/places.c has. */
/* NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);

/* replace.c */
int fl_linux_replace_file(const char *path, const void *data, size_t len);

/* Once, at boot, before any other system call: is there a filter? */
void fl_sys_note_confinement(void);

/* clock.c: by the vDSO, where the kernel maps one. */
void fl_linux_clock(int which, struct timespec *out);
int fl_linux_getcpu(unsigned *out_node);

/* move.c */
int fl_linux_move_begin(struct fl_range to, int *out_fd);
int fl_linux_move_pages(int fd, struct fl_range from, uintptr_t to, size_t *out_moved);
void fl_linux_move_end(int fd, struct fl_range to);

/* crew.c */
int fl_linux_populate_shared(struct fl_range r, unsigned helpers);

/* touch.c */
int fl_linux_touch_open(int *out_fd);
int fl_linux_touch_arm(int fd, struct fl_range r, bool on);
int fl_linux_touch_read(int fd, uintptr_t *out_addr, int *out_tid);

/* pagemap.c */
int fl_linux_find_split(struct fl_range r, struct fl_range *out);
int fl_linux_touched(struct fl_range r, struct fl_range out[], unsigned most);
int fl_linux_survey(struct fl_range r, size_t *out_present, size_t *out_own);
int fl_linux_huge(struct fl_range r, struct fl_range out[], unsigned most);
int fl_linux_filled(struct fl_range r, size_t step, unsigned most, struct fl_filled *out);
int fl_linux_present(struct fl_range r, size_t *out_bytes);

#endif
