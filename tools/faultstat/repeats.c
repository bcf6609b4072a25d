/* Lines without their numbers, counted. */
#include "faultstat/repeats.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { FL_KINDS = 64, FL_KIND_LEN = 120 };

struct kind {
    char text[FL_KIND_LEN]; /* a line, each number as '#' */
    size_t count;
};

static bool is_number_part(char c)
{
    return isdigit((unsigned char)c) || c == '.' || c == ',';
}

/* Returns whether there was a number. */
static bool reduce(const char *line, size_t len, char out[FL_KIND_LEN])
{
    bool has_number = false;
    size_t used = 0;
    for (size_t i = 0; i < len && used < FL_KIND_LEN - 1;) {
        if (isdigit((unsigned char)line[i])) {
            has_number = true;
            out[used++] = '#';
            while (i < len && is_number_part(line[i])) {
                i++;
            }
        } else {
            out[used++] = line[i++];
        }
    }
    out[used] = '\0';
    return has_number;
}

static void count_kind(struct kind kinds[FL_KINDS], const char *text)
{
    for (size_t i = 0; i < FL_KINDS; i++) {
        if (kinds[i].count == 0 || strcmp(kinds[i].text, text) == 0) {
            memcpy(kinds[i].text, text, FL_KIND_LEN);
            kinds[i].count++;
            return;
        }
    }
}

/* What stands before the first number, special characters escaped, and a digit. */
static void make_pattern(const char *kind, char out[FL_PATTERN_LEN])
{
    size_t used = 1;
    out[0] = '^';
    for (; *kind != '#' && used < FL_PATTERN_LEN - 8; kind++) {
        if (strchr("\\^$.[]|()*+?{}", *kind) != NULL) {
            out[used++] = '\\';
        }
        out[used++] = *kind;
    }
    snprintf(out + used, FL_PATTERN_LEN - used, "%s", *kind == '#' ? "[0-9]" : "");
}

size_t fl_repeats_find(const char *text, char pattern[FL_PATTERN_LEN])
{
    static struct kind kinds[FL_KINDS]; /* static for its size */
    const struct kind *most = &kinds[0];
    memset(kinds, 0, sizeof(kinds));
    while (*text != '\0') {
        char kind[FL_KIND_LEN];
        size_t len = strcspn(text, "\r\n");
        if (reduce(text, len, kind) && strncmp(kind, "SUMMARY", 7) != 0) {
            count_kind(kinds, kind);
        }
        text += len + (text[len] != '\0');
    }
    for (size_t i = 0; i < FL_KINDS; i++) {
        most = kinds[i].count > most->count ? &kinds[i] : most;
    }
    if (most->count < FL_REPEATS_LEAST) {
        return 0;
    }
    make_pattern(most->text, pattern);
    return most->count;
}
