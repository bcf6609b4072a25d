/* What memory of the process's own holds, read by the kernel: a page that goes away meanwhile, or
 * may not be read, is an answer and no signal. Sources: proc(5), /proc/PID/mem;
 * process_vm_readv(2). */
#include "sys/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/uio.h>

/* Bytes. Base pages that are longer make up no huge page: see page.c. */
enum { READ_AT_ONCE = 32 * FL_KIB };

static void note(struct fl_filled *out, uintptr_t page)
{
    fl_assert(out->n == 0 || page > out->last);
    out->first = out->n == 0 ? page : out->first;
    out->last = page;
    out->n++;
}

/* Not by memcmp, which is ours and goes byte by byte. */
static bool is_zero(const uint64_t *word)
{
    size_t n = fl_page.base / sizeof *word, i = 0;

    /* NOLINTNEXTLINE(clang-analyzer-core.*): the kernel has written it */
    while (i < n && (word[i] | word[i + 1] | word[i + 2] | word[i + 3]) == 0) {
        i += 4;
    }
    return i == n;
}

static void look(const uint64_t *word, struct fl_range r, unsigned most, struct fl_filled *out)
{
    for (size_t at = 0; at < r.len && out->n < most; at += fl_page.base) {
        if (!is_zero(word + at / sizeof *word)) {
            note(out, r.base + at);
        }
    }
}

int fl_linux_filled(struct fl_range r, size_t step, unsigned most, struct fl_filled *out)
{
    uint64_t buf[READ_AT_ONCE / sizeof(uint64_t)];
    size_t piece = step == fl_page.base ? sizeof buf : fl_page.base, on = fl_max(step, piece);
    int rc = 0;

    fl_assert(fl_page.base <= READ_AT_ONCE);
    *out = (struct fl_filled){0, 0, 0};
    if (fl_sys_is_confined()) {
        return -EPERM;
    }
    long fd = fl_call(SYS_openat, AT_FDCWD, "/proc/thread-self/mem", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return (int)fd;
    }
    for (size_t done = 0; done < r.len && out->n < most && rc == 0; done += on) {
        struct fl_range part = {r.base + done, fl_min(piece, r.len - done)};
        long n = fl_call(SYS_pread64, fd, buf, part.len, part.base);
        rc = n < 0 ? (int)n : (size_t)n < part.len ? -EIO : 0;
        if (rc == 0) {
            look(buf, part, most, out);
        }
    }
    (void)fl_call(SYS_close, fd);
    return rc;
}

size_t fl_sys_peek(void *to, uintptr_t from, size_t len)
{
    enum { PAGES_MOST = 16 };
    struct iovec part[PAGES_MOST]; /* a page each: what cannot be read whole is left out whole */
    size_t n = 0, asked = 0;

    if (len == 0) {
        return 0;
    }
    for (; n < PAGES_MOST && asked < len; n++) {
        size_t in_page = fl_page.base - (from + asked) % fl_page.base;
        void *at = (void *)(from + asked); /* NOLINT(performance-no-int-to-ptr) */
        part[n] = (struct iovec){at, fl_min(in_page, len - asked)};
        asked += part[n].iov_len;
    }
    struct iovec all = {to, asked};
    long got = fl_call(SYS_process_vm_readv, fl_call_pid(), &all, 1, part, n, 0);
    if (got > 0) {
        return (size_t)got;
    }
    (void)fl_libc.memcpy(to, part[0].iov_base, part[0].iov_len);
    return part[0].iov_len;
}
