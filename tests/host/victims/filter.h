/* seccomp filters that are lists of the calls allowed: numbers with commas between. */
#ifndef FAULTLESS_TESTS_HOST_FILTER_H
#define FAULTLESS_TESTS_HOST_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILTER_CALLS = 512 };

struct filter {
    struct sock_filter code[2 * FILTER_CALLS + 2];
    struct sock_fprog program;
};

/* Victims are of one architecture: that a number means what it means here is not looked at. */
static inline void filter_make(struct filter *f, const char *list, unsigned otherwise)
{
    unsigned short n = 0;

    f->code[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (const char *p = list; *p != '\0' && n < 2 * FILTER_CALLS;) {
        char *end;
        unsigned nr = (unsigned)strtoul(p, &end, 10);
        if (end == p) {
            break;
        }
        f->code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1);
        f->code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        p = *end == ',' ? end + 1 : end;
    }
    f->code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
    f->program = (struct sock_fprog){n, f->code};
}

/* What a filter does about a call that is not in its list. */
static inline unsigned filter_action(const char *name)
{
    return strcmp(name, "kill_process") == 0  ? SECCOMP_RET_KILL_PROCESS
           : strcmp(name, "kill_thread") == 0 ? SECCOMP_RET_KILL_THREAD
           : strcmp(name, "trap") == 0        ? SECCOMP_RET_TRAP
           : strcmp(name, "trace") == 0       ? SECCOMP_RET_TRACE
                                              : SECCOMP_RET_ERRNO | 1 /* EPERM */;
}

/* 0, or not. For the calling thread alone. */
static inline int filter_install(const struct filter *f)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &f->program) != 0;
}

#endif
