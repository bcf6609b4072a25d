/* Number and word parsers for options and procfs: total functions, no locale, no errno. */
#include "base/base.h"

#include <errno.h>
#include <string.h>

static int parse_digits(const char **s, uint64_t *out)
{
    uint64_t v = 0;
    const char *p = *s;

    if (*p < '0' || *p > '9') {
        return -EINVAL;
    }
    for (; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v)) {
            return -ERANGE;
        }
    }
    *s = p;
    *out = v;
    return 0;
}

int fl_parse_u64(const char *s, uint64_t *out)
{
    int rc = parse_digits(&s, out);

    return rc == 0 && *s != '\0' ? -EINVAL : rc;
}

/* Of KB and KiB: they mean the same here. */
static bool is_rest_of_unit(const char *s)
{
    s += *s == 'i' && (s[1] == 'B' || s[1] == 'b');
    s += *s == 'B' || *s == 'b';
    return *s == '\0';
}

int fl_parse_size(const char *s, uint64_t *out)
{
    static const char units[] = "KMGT";
    int rc = parse_digits(&s, out);

    if (rc != 0 || *s == '\0') {
        return rc;
    }
    char up = (char)(*s >= 'a' && *s <= 'z' ? *s - 'a' + 'A' : *s);
    const char *unit = strchr(units, up);
    if (unit == NULL || !is_rest_of_unit(s + 1)) {
        return -EINVAL;
    }
    unsigned shift = 10 * (unsigned)(unit - units + 1);
    if (*out > UINT64_MAX >> shift) {
        return -ERANGE;
    }
    *out <<= shift;
    return 0;
}

int fl_parse_millionths(const char *s, uint64_t *out)
{
    uint64_t whole = 0, part = 0, unit = 1000000;
    bool some = *s >= '0' && *s <= '9', dropped = false;

    if (some && parse_digits(&s, &whole) != 0) {
        return -ERANGE;
    }
    if (*s == '.') {
        for (s++; *s >= '0' && *s <= '9'; s++) {
            some = true;
            unit /= 10;
            part += unit * (uint64_t)(*s - '0');
            dropped |= unit == 0 && *s != '0';
        }
    }
    if (!some || *s != '\0') {
        return -EINVAL;
    }
    if (whole > UINT64_MAX / 1000000 - 1) {
        return -ERANGE;
    }
    *out = whole * 1000000 + part;
    *out += *out == 0 && dropped;
    return 0;
}

int fl_parse_bool(const char *s)
{
    static const char *const yes[] = {"1", "on", "yes", "true"};
    static const char *const no[] = {"0", "off", "no", "false", ""};

    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        if (strcmp(s, yes[i]) == 0) {
            return 1;
        }
    }
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
        if (strcmp(s, no[i]) == 0) {
            return 0;
        }
    }
    return -EINVAL;
}

bool fl_parse_after(const char *text, const char *key, uint64_t *out)
{
    const char *p = strstr(text, key);

    if (p == NULL) {
        return false;
    }
    p += strlen(key);
    while (*p == ' ' || *p == '\t') {
        p++;
    }
    return parse_digits(&p, out) == 0;
}

int fl_parse_span(const char **s, uint64_t *first, uint64_t *last)
{
    const char *p = *s;

    if (*p == '\0' || *p == '\n') {
        return -ENOENT;
    }
    if (parse_digits(&p, first) != 0) {
        return -EINVAL;
    }
    *last = *first;
    if (*p == '-') {
        p++;
        if (parse_digits(&p, last) != 0 || *last < *first) {
            return -EINVAL;
        }
    }
    if (*p == ',' && p[1] >= '0' && p[1] <= '9') {
        p++;
    } else if (*p != '\0' && *p != '\n') {
        return -EINVAL;
    }
    *s = p;
    return 0;
}

unsigned fl_edit_distance(const char *a, const char *b)
{
    enum { MAX = 64 };
    unsigned row[MAX + 1];
    size_t na = fl_min(strlen(a), MAX), nb = fl_min(strlen(b), MAX);

    for (size_t j = 0; j <= nb; j++) {
        row[j] = (unsigned)j;
    }
    for (size_t i = 1; i <= na; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            unsigned change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            unsigned edit = (unsigned)fl_min(row[j], row[j - 1]) + 1;
            row[j] = edit < change ? edit : change;
        }
    }
    return row[nb];
}
