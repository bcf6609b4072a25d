/* seccomp filters by the numbers of calls: what each of some is answered, and what all others. That
 * a number means what it means here is not looked at: what they confine is of one architecture. */
#ifndef FAULTLESS_TESTS_SECCOMP_H
#define FAULTLESS_TESTS_SECCOMP_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { FILTER_CALLS = 512 };

struct filter {
    struct sock_filter code[2 * FILTER_CALLS + 2];
    struct sock_fprog program;
};

static inline void filter_begin(struct filter *f)
{
    f->program = (struct sock_fprog){1, f->code};
    f->code[0] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
}

/* No more than FILTER_CALLS times. */
static inline void filter_answer(struct filter *f, unsigned call, unsigned answer)
{
    struct sock_filter *next = f->code + f->program.len;

    next[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
    next[1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
    f->program.len = (unsigned short)(f->program.len + 2);
}

static inline void filter_end(struct filter *f, unsigned otherwise)
{
    f->code[f->program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
}

/* 0, or not. For the calling thread alone. */
static inline int filter_install(const struct filter *f)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &f->program) != 0;
}

#endif
