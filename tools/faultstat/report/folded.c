#include "faultstat/report/report.h"

#include <string.h>

void fl_report_folded(const json_t *record, FILE *file)
{
    const json_t *frames = json_object_get(record, "frames");
    const json_t *stack;
    size_t i;
    json_array_foreach(json_object_get(record, "stacks"), i, stack)
    {
        const json_t *list = json_object_get(stack, "frames");
        for (size_t k = 0; k < json_array_size(list); k++) {
            size_t frame = (size_t)json_integer_value(json_array_get(list, k));
            const char *name =
                json_string_value(json_object_get(json_array_get(frames, frame), "name"));
            fputs(k != 0 ? ";" : "", file);
            for (const char *at = name != NULL ? name : "?"; *at != '\0'; at++) {
                fputc(*at == ';' || *at == '\n' ? ':' : *at, file); /* the format's own */
            }
        }
        fprintf(file, "%s %.0f\n", json_array_size(list) == 0 ? "[no stack]" : "",
                json_number_value(json_object_get(stack, "faults")));
    }
}
