/* What the planner writes to files and reads from them.
 *
 * plan_format.c  plans to the bytes of a plan file and back: docs/plan-file.md. Pure.
 * plan_file.c    the file, read and replaced as a whole; the key of a program's plans in it.
 * plan_layout.c  a plan of a file as a layout that can be served, or none.
 * plan_cache.c   the plans of this program: read at boot, given to contexts, written when new.
 * step_trace.c   recorded steps as text, for faultplan(1).
 * Nothing that is read is trusted. Only the cache has state: the plan lock guards it, its text says
 * what else. Sizes and offsets are bytes. */
#ifndef FL_PLAN_STORE_STORE_H
#define FL_PLAN_STORE_STORE_H

#include "plan/plan.h"

/* ---- a plan file's bytes: plan_format.c. Buffers are aligned to 8 bytes. ---- */

enum {
    FL_FILE_HEAD = 32, /* bytes: what fl_file_length wants to see */
    FL_FILE_CHECKSUM_AT = 24,
    FL_FILE_PLANS = 64,      /* at most; FL_FILE_SLOTS in each */
    FL_FILE_SLOTS = 1 << 15, /* as many as are learned */
    FL_FILE_BYTES = 16 * FL_MIB,
};

struct fl_file_plan {
    uint64_t key;       /* of the program */
    uint64_t signature; /* by which the program's plans are told apart: any number */
    uint64_t horizon, height;
    uint64_t granule;           /* of the packer; every offset is a multiple of it */
    uint64_t n;                 /* slots */
    const struct fl_slot *slot; /* of a plan that was read: in the file's bytes */
};

/* A file under construction in caller memory: begin, add or keep, end. Cost of all here: 1 ns a
 * byte. */
struct fl_file {
    unsigned char *buf;
    size_t size, len; /* bytes */
    unsigned n;       /* plans */
};

/* Bytes that a plan of `n` slots takes, besides FL_FILE_HEAD for all. */
size_t fl_file_cost(size_t n);
/* False: not even the head has room. */
bool fl_file_begin(struct fl_file *f, void *buf, size_t size);
/* -EINVAL: a slot is such as fl_merge and the packer do not make; -ENOSPC. */
int fl_file_add(struct fl_file *f, const struct fl_file_plan *p);
/* Adds the plans of `old`, which fl_file_check passed, in their order, but for those with key
 * `but`. Returns how many had no room. */
unsigned fl_file_keep(struct fl_file *f, const void *old, uint64_t but);
/* Bytes of the whole file. */
size_t fl_file_end(struct fl_file *f);

/* Of the file that begins with `head`, of which `len` bytes are there. 0; -EINVAL: it is no plan
 * file; -ENOTSUP: it is of another version; -EMSGSIZE: its length cannot be. */
int fl_file_length(const void *head, size_t len, size_t *out);
/* Is it whole, and each slot one that could have been added? All of fl_file_length's; -EMSGSIZE: it
 * is cut short; -EBADMSG: its checksum is wrong; -EILSEQ: its content makes no sense. Whether slots
 * overlap is not looked at. */
int fl_file_check(const void *buf, size_t len);
/* What such an answer means, for people. */
const char *fl_file_why(int rc);
/* The plan after the one at *at (0: the first) in a file that fl_file_check passed. -ENOKEY: there
 * is none. */
int fl_file_next(const void *buf, size_t *at, struct fl_file_plan *out);
/* The same, of that program. */
int fl_file_find(const void *buf, uint64_t key, size_t *at, struct fl_file_plan *out);

uint64_t fl_file_hash(uint64_t seed, const void *data, size_t len);
uint64_t fl_file_checksum(const void *file, size_t len);

/* ---- the file, and whose plans these are: plan_file.c ---- */

/* What tells programs apart, besides the sizes of pages. */
struct fl_file_program {
    const char *exe; /* path; what follows its last slash counts */
    /* Each ends with NUL, as in /proc/PID/cmdline; the first, if any, is the program's name. */
    const char *args;
    size_t args_len;   /* bytes */
    const void *build; /* whatever changes when it is built anew */
    size_t build_len;
};

/* Of a program: its name, its build, and the first argument that is no option, which is what an
 * interpreter runs. */
uint64_t fl_file_key(const struct fl_file_program *p);
/* Of this one. Its build: the program headers. Reads /proc/self/cmdline. */
uint64_t fl_file_key_here(void);
/* How long it is. -ENOENT and others of open(2) and read(2); those of fl_file_length. */
int fl_file_look(const char *path, size_t *out_len);
/* Reads and checks it: `len` is as fl_file_look said, `buf` has one byte more. */
int fl_file_read(const char *path, void *buf, size_t len);
/* In place of what was there, at once or not at all. -EINVAL: what is there is no plan file, and
 * not empty; it is left alone. */
int fl_file_write(const char *path, const void *buf, size_t len);

/* ---- layouts of what a file has: plan_layout.c ---- */

struct fl_layout;

/* Of a plan of a file that fl_file_check passed. NULL: it is none that can be served, or there is
 * no memory. What it takes of memory is a small multiple of the plan's bytes in the file. */
struct fl_layout *fl_keep_layout(const struct fl_file_plan *p);

/* ---- the plans of this program: plan_cache.c ---- */

struct fl_record;

/* At boot. The path holds wherever the program goes later. */
void fl_keep_load(const char *path);
/* The plans used last become what the new context knows. */
void fl_keep_adopt(struct fl_step_context *c);
/* The context's last requests begin a plan that was there at boot: it becomes one of those that the
 * context knows, once; NULL: they do not. The context's thread. Cost: O(1); the lock for one that
 * is found. */
struct fl_layout *fl_keep_find(struct fl_step_context *c);
/* A step was served from it. Cost: none where the last one was too; else a lock. */
void fl_keep_use(const struct fl_layout *l);
/* It is new, or takes the place of its like: it is written with the next fl_keep_save (plan.h). */
void fl_keep_note(const struct fl_layout *l);

/* ---- recorded steps as text: step_trace.c ---- */

void fl_trace_step(struct fl_step_context *c, const struct fl_record *rec);

#endif
