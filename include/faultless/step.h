/* SPDX-License-Identifier: Apache-2.0 */
/* Marks step boundaries for faultstat(1). Header only, C and C++; a program that includes it links
 * nothing more. Any -std from c99 on; what hides POSIX needs no macro.
 *
 * faultstat passes one end of an AF_UNIX SOCK_SEQPACKET pair and its number in FAULTSTAT_STEP_FD. A
 * mark sends one message and waits for one byte; faultstat reads the paused process's figures from
 * /proc meanwhile, so what measuring costs is in no step. The first mark opens step 0, each later
 * one closes a step and opens the next: n steps take n + 1 marks.
 *
 * | offset | width | of the message, in host byte order                                          |
 * |      0 |     1 | 's'                                                                          |
 * |      1 |     8 | CLOCK_MONOTONIC in ns when the mark before this one returned; 0 at the first |
 * |      9 |     8 | the same clock when this mark was called                                     |
 * A message of the first byte alone is good too: faultstat's own clock then includes its wake-up.
 *
 * State: a descriptor number and a time for each translation unit that includes this file.
 * Lock: none (see fl_step_mark).
 */
#ifndef FAULTLESS_STEP_H
#define FAULTLESS_STEP_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

enum { FL_STEP_MESSAGE_LEN = 17 };

/* With -std=c11 and the like <time.h> hides the clock, and with c99 the struct as well. */
#ifdef CLOCK_MONOTONIC
typedef struct timespec fl_step_time;
#define FL_STEP_CLOCK CLOCK_MONOTONIC
#else
typedef struct {
    long tv_sec, tv_nsec;
} fl_step_time;
#define FL_STEP_CLOCK 1 /* Linux's number of it */
extern int clock_gettime(int, fl_step_time *);
#endif

/* CLOCK_MONOTONIC in nanoseconds.  Threads: any.  Signals: safe.  Fork: child may call. */
static inline uint64_t fl_step_now_ns(void)
{
    fl_step_time now;
    clock_gettime(FL_STEP_CLOCK, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Is `fd` the kind of socket that faultstat hands over? A program that closed every descriptor may
 * have reused the number.
 *   fd   any integer.
 * Returns 1 or 0; errno is left as it was.  Threads: any.  Signals: safe.  Fork: child may call. */
static inline int fl_step_is_channel(int fd)
{
    int saved_errno = errno;
    struct sockaddr name;
    int type = 0;
    socklen_t len = sizeof(name);
    int is_channel = getsockname(fd, &name, &len) == 0 && name.sa_family == AF_UNIX;
    len = sizeof(type);
    is_channel = is_channel && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
                 type == SOCK_SEQPACKET;
    errno = saved_errno;
    return is_channel;
}

/* Say that a step ends here and the next one begins; wait while faultstat reads this process's
 * figures.
 * Returns 0; -ENOTCONN when no faultstat listens (the variable is absent, the descriptor was closed
 * or reused, or faultstat has gone), and then at once and for ever. Never raises SIGPIPE; errno is
 * left as it was.
 * Threads: one at a time; the others run on during the wait.  Signals: not safe.
 * Fork: child may call; faultstat answers and ignores the marks of any process but the first that
 * marked.
 * Cost: without faultstat one getenv at the first call, then one load; with it two wake-ups and the
 * reading of /proc.
 * Source: unix(7), send(2) MSG_NOSIGNAL. */
static inline int fl_step_mark(void)
{
    static int fd = -2;             /* -2: not looked up yet; -1: no listener */
    static uint64_t resumed_ns = 0; /* when the last mark returned */
    if (fd == -2) {
        const char *text = getenv("FAULTSTAT_STEP_FD");
        fd = text != NULL ? atoi(text) : -1;
    }
    if (fd < 0 || !fl_step_is_channel(fd)) {
        fd = -1;
        return -ENOTCONN;
    }
    uint64_t called_ns = fl_step_now_ns();
    int saved_errno = errno;
    char message[FL_STEP_MESSAGE_LEN] = {'s'};
    ssize_t done;
    memcpy(message + 1, &resumed_ns, sizeof(resumed_ns));
    memcpy(message + 9, &called_ns, sizeof(called_ns));
    do {
        done = send(fd, message, sizeof(message), MSG_NOSIGNAL);
    } while (done < 0 && errno == EINTR);
    if (done == FL_STEP_MESSAGE_LEN) {
        do {
            done = recv(fd, message, 1, 0);
        } while (done < 0 && errno == EINTR);
    }
    resumed_ns = fl_step_now_ns();
    errno = saved_errno;
    if (done != 1) {
        fd = -1;
        return -ENOTCONN;
    }
    return 0;
}

#endif
