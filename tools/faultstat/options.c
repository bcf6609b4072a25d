/* Parsing with a message for the user. */
#include "faultstat/options.h"

#include "launcher/find.h"

#include <math.h>
#include <stdlib.h>

long fl_options_number(struct argp_state *state, const char *text, long least, long most)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (*end != '\0' || end == text || number < least || number > most) {
        argp_error(state, "'%s' is no number between %ld and %ld", text, least, most);
    }
    return number;
}

double fl_options_seconds(struct argp_state *state, const char *text)
{
    char *end;
    double seconds = strtod(text, &end);
    if (*end != '\0' || end == text || !isfinite(seconds) || seconds <= 0 || seconds > 1e9) {
        argp_error(state, "'%s' is no time in seconds", text);
    }
    return seconds;
}

const char *fl_options_file(struct argp_state *state, const char *text)
{
    if (!fl_is_output(text)) {
        argp_error(state, "'%s' is no name for a file to be written", text);
    }
    return text;
}

void fl_options_regex(struct argp_state *state, const char *text, regex_t *out)
{
    char why[160];
    int error = regcomp(out, text, REG_EXTENDED | REG_NOSUB);
    if (error != 0) {
        regerror(error, out, why, sizeof(why));
        argp_error(state, "'%s' is no regular expression: %s", text, why);
    }
}
