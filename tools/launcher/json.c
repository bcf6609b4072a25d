#include "launcher/json.h"

#include "launcher/lines.h"

#include <inttypes.h>
#include <string.h>

/* Bytes that are no UTF-8 become '?': a path may have any. */
static size_t utf8_len(const unsigned char *s)
{
    size_t n = *s < 0x80                 ? 1
               : *s >= 0xc2 && *s < 0xe0 ? 2
               : *s >= 0xe0 && *s < 0xf0 ? 3
               : *s >= 0xf0 && *s < 0xf5 ? 4
                                         : 0;

    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool bad = (n == 3 && ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] >= 0xa0))) ||
               (n == 4 && ((*s == 0xf0 && s[1] < 0x90) || (*s == 0xf4 && s[1] >= 0x90)));
    return bad ? 0 : n;
}

void fl_put_quote(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *s = (const unsigned char *)text; *s != '\0';) {
        size_t n = utf8_len(s);
        if (*s == '"' || *s == '\\') {
            fputc('\\', out);
        }
        if (*s < ' ') {
            fprintf(out, "\\u%04x", *s);
        } else if (n == 0) {
            fputc('?', out);
        } else {
            fwrite(s, 1, n, out);
        }
        s += n != 0 ? n : 1;
    }
    fputc('"', out);
}

void fl_put_member(FILE *out, const char *name, const char *text)
{
    fprintf(out, ", \"%s\": ", name);
    if (text != NULL && text[0] != '\0') {
        fl_put_quote(out, text);
    } else {
        fputs("null", out);
    }
}

void fl_put_bytes(FILE *out, const char *name, uint64_t value)
{
    if (value == FL_UNLIMITED) {
        fprintf(out, ", \"%s\": null", name);
    } else {
        fprintf(out, ", \"%s\": %" PRIu64, name, value);
    }
}

void fl_put_truth(FILE *out, const char *name, bool value)
{
    fprintf(out, ", \"%s\": %s", name, value ? "true" : "false");
}

void fl_put_list(FILE *out, const char *name, const char *const text[], unsigned n)
{
    fprintf(out, ", \"%s\": [", name);
    for (unsigned i = 0; i < n; i++) {
        fputs(i == 0 ? "" : ", ", out);
        fl_put_quote(out, text[i]);
    }
    fputc(']', out);
}
