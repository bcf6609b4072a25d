/* UTF-8 by hand: the locale is C, and names of files need not be in any. */
#include "faultstat/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool is_tail(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Bytes of the character at `s`, 0 when it is none: cut short, overlong, a surrogate, too large.
 * Source: RFC 3629, section 4. */
static size_t character_len(const char *s)
{
    unsigned char a = (unsigned char)s[0];
    unsigned char b = (unsigned char)s[a != 0];
    size_t len = a < 0x80 ? 1 : a < 0xc2 ? 0 : a < 0xe0 ? 2 : a < 0xf0 ? 3 : a < 0xf5 ? 4 : 0;
    if ((a == 0xe0 && b < 0xa0) || (a == 0xed && b > 0x9f) || (a == 0xf0 && b < 0x90) ||
        (a == 0xf4 && b > 0x8f)) {
        return 0;
    }
    for (size_t i = 1; i < len; i++) {
        if (!is_tail(s[i])) {
            return 0;
        }
    }
    return len;
}

char *fl_text_utf8(const char *text)
{
    static const char replacement[] = "\xef\xbf\xbd";
    char *copy = malloc(3 * strlen(text) + 1);
    char *out = copy;
    if (copy == NULL) {
        return NULL;
    }
    while (*text != '\0') {
        size_t len = character_len(text);
        memcpy(out, len > 0 ? text : replacement, len > 0 ? len : 3);
        out += len > 0 ? len : 3;
        text += len > 0 ? len : 1;
    }
    *out = '\0';
    return copy;
}

char *fl_text_line(const char *text)
{
    char *line = fl_text_utf8(text);
    for (char *c = line; c != NULL && *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = '?';
        }
    }
    return line;
}

char *fl_text_command(char *const argv[])
{
    char *all = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&all, &len);
    if (file == NULL) {
        return NULL;
    }
    for (size_t i = 0; argv[i] != NULL; i++) {
        fprintf(file, "%s%s", i > 0 ? " " : "", argv[i]);
    }
    char *line = fclose(file) == 0 ? fl_text_line(all) : NULL;
    free(all);
    return line;
}

size_t fl_text_width(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++) {
        width += !is_tail(*text);
    }
    return width;
}

void fl_text_wrap(FILE *file, const char *label, const char *text, size_t indent, size_t columns)
{
    size_t at = fl_text_width(label);
    fputs(label, file);
    for (; at < indent; at++) {
        fputc(' ', file);
    }
    bool is_first = true;
    for (text += strspn(text, " "); *text != '\0'; text += strspn(text, " ")) {
        char word[4096];
        size_t len = strcspn(text, " ");
        snprintf(word, sizeof(word), "%.*s", (int)len, text);
        size_t width = fl_text_width(word);
        if (!is_first && at + 1 + width > columns) {
            fprintf(file, "\n%*s", (int)indent, "");
            at = indent;
            is_first = true;
        }
        fprintf(file, "%s%s", is_first ? "" : " ", word);
        at += width + !is_first;
        is_first = false;
        text += len;
    }
    fputc('\n', file);
}

size_t fl_text_columns(FILE *file)
{
    struct winsize size;
    return ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                          : FL_COLUMNS;
}

bool fl_text_can_rewrite(FILE *file)
{
    const char *terminal = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");
    return isatty(fileno(file)) == 1 && terminal != NULL && terminal[0] != '\0' &&
           strcmp(terminal, "dumb") != 0 && (no_color == NULL || no_color[0] == '\0');
}
