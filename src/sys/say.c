/* Diagnostics by write(2) alone: usable early, in signal handlers and under any lock. */
#include "sys/sys.h"

#include <stdlib.h>
#include <unistd.h>

void fl_say(const char *text)
{
    char line[512];
    struct fl_text t = fl_text_on(line, sizeof line - 1);

    fl_text_str(&t, "faultless: ");
    fl_text_str(&t, text);
    for (size_t i = 0; i < t.len; i++) { /* one line, whatever an option's value holds */
        if (line[i] == '\n' || line[i] == '\r') {
            line[i] = '?';
        }
    }
    line[t.len++] = '\n';
    (void)fl_sys.write(STDERR_FILENO, line, t.len);
}

_Noreturn void fl_fatal(const char *text)
{
    fl_say(text);
    abort();
}
