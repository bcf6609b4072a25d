#include "launcher/lines.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 80, INDENT = 12 };

void fl_line_begin(struct fl_line *l, FILE *out, const char *label)
{
    *l = (struct fl_line){out, INDENT};
    fprintf(out, "%-*s", INDENT, label);
}

void fl_line_word(struct fl_line *l, const char *text)
{
    size_t len = strlen(text);

    if (l->at > INDENT && l->at + 1 + len > WIDTH) {
        fprintf(l->out, "\n%*s", INDENT, "");
        l->at = INDENT;
    }
    l->at += len + (l->at > INDENT);
    fprintf(l->out, "%s%s", l->at > INDENT + len ? " " : "", text);
}

void fl_line_words(struct fl_line *l, const char *text)
{
    char *copy = strdup(text), *rest = NULL;

    for (char *w = copy != NULL ? strtok_r(copy, " ", &rest) : NULL; w != NULL;
         w = strtok_r(NULL, " ", &rest)) {
        fl_line_word(l, w);
    }
    free(copy);
}

void fl_line_end(struct fl_line *l)
{
    fputc('\n', l->out);
}

void fl_row(FILE *out, const char *label, const char *form, ...)
{
    char *text = NULL;
    struct fl_line l;
    va_list args;

    va_start(args, form);
    if (vasprintf(&text, form, args) >= 0) {
        fl_line_begin(&l, out, label);
        fl_line_words(&l, text);
        fl_line_end(&l);
        free(text);
    }
    va_end(args);
}

const char *fl_size(uint64_t bytes)
{
    static char text[8][16];
    static unsigned at;
    static const char unit[] = "BKMGTPE";
    double v = (double)bytes;
    int i = 0;

    if (bytes == FL_UNLIMITED) {
        return "none";
    }
    for (; v >= 1024; i++) {
        v /= 1024;
    }
    at = (at + 1) % 8;
    snprintf(text[at], sizeof text[at], v < 10 && i > 0 ? "%.1f%c" : "%.0f%c", v, unit[i]);
    return text[at];
}
