/* Text without stdio: what diagnostics are written with before libc is up and while locks are
 * held. */
#include "base/base.h"

struct fl_text fl_text_on(char *buf, size_t size)
{
    buf[0] = '\0';
    return (struct fl_text){buf, size, 0};
}

void fl_text_str(struct fl_text *t, const char *s)
{
    while (*s != '\0' && t->len + 1 < t->size) {
        t->buf[t->len++] = *s++;
    }
    t->buf[t->len] = '\0';
}

static void append_number(struct fl_text *t, uint64_t v, unsigned radix)
{
    char digits[21];
    size_t i = sizeof digits - 1;

    digits[i] = '\0';
    do {
        digits[--i] = "0123456789abcdef"[v % radix];
        v /= radix;
    } while (v != 0);
    fl_text_str(t, digits + i);
}

void fl_text_u64(struct fl_text *t, uint64_t v)
{
    append_number(t, v, 10);
}

void fl_text_hex(struct fl_text *t, uint64_t v)
{
    fl_text_str(t, "0x");
    append_number(t, v, 16);
}

void fl_text_size(struct fl_text *t, uint64_t bytes)
{
    static const char *const unit[] = {"", "K", "M", "G", "T"};
    unsigned i = 0;

    while (i < 4 && bytes != 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        i++;
    }
    append_number(t, bytes, 10);
    fl_text_str(t, unit[i]);
}

void fl_text_millionths(struct fl_text *t, uint64_t v)
{
    char digits[8] = ".";
    size_t n = 0;

    append_number(t, v / 1000000, 10);
    v %= 1000000;
    for (uint64_t unit = 100000; v != 0; unit /= 10) {
        digits[++n] = (char)('0' + v / unit);
        v %= unit;
    }
    digits[n + 1] = '\0';
    fl_text_str(t, n == 0 ? "" : digits);
}
