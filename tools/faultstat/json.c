/* JSON in and out. json_real refuses NAN, so an absent figure has no key. */
#include "faultstat/json.h"

#include "faultstat/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double rounded(double value)
{
    return nearbyint(value * 1e4) / 1e4;
}

json_t *fl_json_metrics(const double value[static FL_METRIC_COUNT])
{
    json_t *object = json_object();
    for (int i = 0; i < FL_METRIC_COUNT; i++) {
        if (!isnan(value[i])) {
            json_object_set_new(object, fl_metric_info[i].key, json_real(rounded(value[i])));
        }
    }
    return object;
}

json_t *fl_json_text(const char *text)
{
    char *copy = fl_text_utf8(text);
    json_t *string = copy != NULL ? json_string(copy) : NULL;
    free(copy);
    return string;
}

json_t *fl_json_command(char *const argv[])
{
    json_t *array = json_array();
    for (size_t i = 0; argv[i] != NULL; i++) {
        json_array_append_new(array, fl_json_text(argv[i]));
    }
    return array;
}

json_t *fl_json_steps(const struct fl_steps *steps)
{
    json_t *array = json_array();
    for (size_t i = 0; i < fl_steps_count(steps); i++) {
        struct fl_step step = fl_steps_get(steps, i);
        json_array_append_new(
            array, json_pack("{s:f, s:I, s:I, s:I, s:f, s:f}", "wall_ms", rounded(step.wall_ms),
                             "minor", (json_int_t)step.minor, "major", (json_int_t)step.major,
                             "helper_minor", (json_int_t)step.helper_minor, "user_ms",
                             rounded(step.user_ms), "sys_ms", rounded(step.sys_ms)));
    }
    return array;
}

static const char *find_last_summary(const char *text)
{
    static const char mark[] = "SUMMARY {";
    const char *found = NULL;
    for (const char *at = strstr(text, mark); at != NULL; at = strstr(at + 1, mark)) {
        if (at == text || at[-1] == '\n') {
            found = at + strlen(mark) - 1;
        }
    }
    return found;
}

json_t *fl_json_reported(const char *text)
{
    const char *begin = find_last_summary(text);
    json_t *whole = begin != NULL ? json_loads(begin, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    if (whole == NULL) {
        return NULL;
    }
    json_t *numbers = json_object();
    const char *key;
    json_t *value;
    json_object_foreach(whole, key, value)
    {
        if (json_is_number(value)) {
            json_object_set(numbers, key, value);
        }
    }
    json_decref(whole);
    return numbers;
}

void fl_json_print(const json_t *value, FILE *file)
{
    if (value == NULL) {
        errno = ENOMEM;
        (void)fputs("null", file);
    } else {
        (void)json_dumpf(value, file, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    }
    (void)fputc('\n', file);
}
