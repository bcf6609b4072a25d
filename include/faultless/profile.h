/* SPDX-License-Identifier: Apache-2.0 */
/* The profile of large blocks, for who reads it: from a process that runs, at the address that its
 * live page has (live.h), or from the file that FAULTLESS_PROFILE names. No interface for programs.
 *
 * A sample is a block, the bytes that it stands for, and the stack of its request as it lay: some
 * registers and the bytes above the stack pointer. The reader makes function names of that, so the
 * process neither unwinds nor reads symbols.
 *
 * In memory: the head, and behind it `slots` samples of `stride` bytes. In a file: the head,
 * `slots` samples, each with as many bytes of stack as it has, and the executable lines of
 * /proc/PID/maps; of the stacks only what points to code or into the stack is left, the rest is
 * zero.
 *
 * All is little-endian, without padding. A reader trusts nothing of it. */
#ifndef FAULTLESS_PROFILE_H
#define FAULTLESS_PROFILE_H

#include <stdint.h>

enum {
    FL_PROFILE_VERSION = 1,
    FL_PROFILE_SLOTS = 4096,
    FL_PROFILE_STRIDE = 16384, /* bytes */
    FL_PROFILE_REGS = 8,
    FL_PROFILE_STACK = FL_PROFILE_STRIDE - 128, /* bytes of a stack, at most */
};

#define FL_PROFILE_MAGIC "FLTPROF"

/* Those that a call preserves, and where it is: x86-64's rbx, rbp, rsp, rip, r12 to r15; of arm64
 * x29, sp and pc in the places of rbp, rsp and rip. */
enum { FL_PROFILE_BP = 1, FL_PROFILE_SP = 2, FL_PROFILE_IP = 3 };

enum fl_profile_state {
    FL_PROFILE_NONE, /* nothing, or it is being written */
    FL_PROFILE_LIVE,
    FL_PROFILE_FREED, /* since the peak, when it was live */
};

struct fl_profile_head {
    char magic[8]; /* FL_PROFILE_MAGIC */
    uint32_t version;
    uint32_t slots; /* that there are samples in, or were: no later one is in use */
    uint32_t stride;
    uint32_t pid;        /* the process; in a file, the one that wrote it */
    uint64_t every;      /* bytes between samples, as asked for */
    uint64_t live, peak; /* bytes that the samples stand for: now, and at most */
    uint64_t peak_at;    /* the number of the sample that made the peak */
    uint64_t samples;    /* taken so far */
    uint64_t lost;       /* blocks that were to be sampled, and found no slot */
    /* In a file alone; bytes: of blocks, held and in no block, all that is held, and resident. */
    uint64_t live_bytes, kept_bytes, held_bytes, resident_bytes;
};

struct fl_profile_sample {
    uint32_t state;     /* enum fl_profile_state */
    uint32_t stack_len; /* bytes */
    uint64_t number;    /* among all samples, from 1 on */
    uint64_t len;       /* of the block, bytes */
    uint64_t weight;    /* bytes that it stands for */
    uint64_t reg[FL_PROFILE_REGS];
    uint64_t spare[4];
};

#endif
