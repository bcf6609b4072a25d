#include "host.h"

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

long fl_host_runs(long ordinary)
{
    const char *text = getenv("FL_HOST_RUNS");

    return text != NULL && atol(text) > 0 ? atol(text) : ordinary;
}

uint64_t fl_host_random(void)
{
    static uint64_t state;

    if (state == 0) {
        const char *text = getenv("FL_TEST_SEED");
        state = text != NULL ? strtoull(text, NULL, 0) : (uint64_t)time(NULL) * 2654435761u;
        state |= 1;
        print_message("           FL_TEST_SEED=%llu\n", (unsigned long long)state);
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

struct piped {
    const struct fl_how *how;
    int fd;
};

static void into_pipe(void *arg)
{
    const struct piped *p = arg;

    dup2(p->fd, STDOUT_FILENO);
    if (p->how->in_child != NULL) {
        p->how->in_child(p->how->arg);
    }
}

void fl_host_piped(const struct fl_how *how, struct fl_run *result)
{
    int fds[2];
    size_t len = 0;
    ssize_t n;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    struct piped piped = {how, fds[1]};
    struct fl_how with_pipe = *how;
    with_pipe.in_child = into_pipe;
    with_pipe.arg = &piped;
    memcpy(result, fl_run_how(&with_pipe), sizeof *result);
    close(fds[1]);
    /* A child that outlives the victim may hold the pipe open: what is there now is all. */
    assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    while ((n = read(fds[0], result->out + len, FL_RUN_TEXT - 1 - len)) > 0) {
        len += (size_t)n;
    }
    result->out[len] = '\0';
    close(fds[0]);
}

void fl_host_failed(struct fl_host_tally *t, const char *text, ...)
{
    size_t at = strlen(t->text);
    va_list args;

    if (t->failed++ < FL_HOST_SHOWN) {
        va_start(args, text);
        vsnprintf(t->text + at, sizeof t->text - at, text, args);
        va_end(args);
    }
}

void fl_host_judge(const struct fl_host_tally *t)
{
    if (t->failed > 0) {
        /* cmocka's own messages end after 1,024 bytes. */
        fprintf(stderr, "%s%s", t->text, t->failed > FL_HOST_SHOWN ? "...\n" : "");
        fail_msg("%u of %u rows differ", t->failed, t->rows);
    }
    assert_true(t->rows > 0);
}

const char *fl_host_end(const struct fl_run *r)
{
    static char text[96];

    if (r->timed_out) {
        return "killed: it took too long";
    }
    if (r->term_signal != 0) {
        snprintf(text, sizeof text, "signal %d (%s)", r->term_signal, strsignal(r->term_signal));
    } else {
        snprintf(text, sizeof text, "exit %d", r->exit_status);
    }
    return text;
}
