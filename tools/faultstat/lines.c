/* One buffer; nothing is allocated. */
#include "faultstat/lines.h"

void fl_lines_feed(struct fl_lines *lines, const char *text, size_t len,
                   void (*take)(void *arg, const char *line), void *arg)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\n' && text[i] != '\r') {
            if (lines->len < FL_LINE_LEN - 1) {
                lines->text[lines->len++] = text[i];
                if (text[i] == '\0') {
                    lines->text[lines->len - 1] = '?';
                }
            }
        } else if (lines->len > 0) {
            lines->text[lines->len] = '\0';
            lines->len = 0;
            take(arg, lines->text);
        }
    }
}
