/* A flame graph: boxes upward from the root, as wide as their share of the faults. */
#include "faultstat/report/flame.h"

#include "faultstat/report/report.h"

#include <stdint.h>
#include <string.h>

enum { FL_WIDTH = 1200, FL_ROW = 17, FL_LETTER = 7 };

static const double least_width = 0.4; /* user units: below, a box is left out */

struct drawing {
    const struct fl_flame *flame;
    const json_t *frames;
    FILE *file;
    double height;
};

void fl_report_escape(const char *text, size_t most, FILE *file)
{
    for (size_t i = 0; text[i] != '\0' && i < most; i++) {
        switch (text[i]) {
        case '<':
            fputs("&lt;", file);
            break;
        case '>':
            fputs("&gt;", file);
            break;
        case '&':
            fputs("&amp;", file);
            break;
        case '"':
            fputs("&quot;", file);
            break;
        default:
            fputc((unsigned char)text[i] < 0x20 ? '?' : text[i], file);
        }
    }
}

static const char *text_of(const struct drawing *d, int frame, const char *key)
{
    const char *text =
        frame >= 0
            ? json_string_value(json_object_get(json_array_get(d->frames, (size_t)frame), key))
            : "all";
    return text != NULL ? text : "?";
}

/* A warm colour, alike for alike names; grey for a function without a symbol. */
static void put_colour(const char *name, FILE *file)
{
    uint32_t hash = 2166136261u;
    for (const char *at = name; *at != '\0'; at++) {
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    }
    if (name[0] == '[') {
        fputs("#b8b8b8", file);
    } else {
        fprintf(file, "hsl(%u,75%%,%u%%)", 12 + hash % 38, 58 + (hash >> 8) % 12);
    }
}

static void draw_box(const struct drawing *d, const struct fl_flame_node *node, size_t level,
                     double x, double width)
{
    const char *name = text_of(d, node->frame, "name");
    double y = d->height - (double)(level + 1) * FL_ROW;
    size_t letters = width > 3 * FL_LETTER ? (size_t)(width / FL_LETTER) : 0;
    fprintf(d->file, "<g class=\"box\" data-x=\"%.2f\" data-w=\"%.2f\" data-l=\"%zu\"><title>", x,
            width, level);
    fl_report_escape(name, SIZE_MAX, d->file);
    fputs(" (", d->file);
    fl_report_escape(text_of(d, node->frame, "file"), SIZE_MAX, d->file);
    fprintf(d->file,
            ") %.0f faults, %.2f %%</title><rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" "
            "height=\"%d\" rx=\"1\" fill=\"",
            node->faults, 100 * node->faults / d->flame->node[0].faults, x, y, width, FL_ROW - 1);
    put_colour(name, d->file);
    fprintf(d->file, "\"/><text x=\"%.2f\" y=\"%.0f\">", x + 3, y + 12);
    size_t len = strlen(name);
    fl_report_escape(name, len <= letters ? len : letters > 2 ? letters - 2 : 0, d->file);
    fputs(len > letters && letters > 2 ? "..</text></g>\n" : "</text></g>\n", d->file);
}

/* Levels are at most as deep as a recorded stack, so the recursion is bounded. */
static void draw_node(const struct drawing *d, int number, size_t level, double x, double width)
{
    if (width < least_width) {
        return;
    }
    const struct fl_flame_node *node = &d->flame->node[number];
    draw_box(d, node, level, x, width);
    for (int child = node->first; child >= 0; child = d->flame->node[child].next) {
        double part = width * d->flame->node[child].faults / node->faults;
        draw_node(d, child, level + 1, x, part);
        x += part;
    }
}

/* Levels that have a box, the root's included. */
static size_t drawn_levels(const struct fl_flame *flame, int number, double width)
{
    size_t most = 0;
    if (width < least_width) {
        return 0;
    }
    const struct fl_flame_node *node = &flame->node[number];
    for (int child = node->first; child >= 0; child = flame->node[child].next) {
        size_t levels =
            drawn_levels(flame, child, width * flame->node[child].faults / node->faults);
        most = levels > most ? levels : most;
    }
    return most + 1;
}

void fl_report_flame(const json_t *record, FILE *file)
{
    struct fl_flame flame;
    if (fl_flame_get(record, &flame) == 0) {
        struct drawing d = {&flame, json_object_get(record, "frames"), file,
                            (double)drawn_levels(&flame, 0, FL_WIDTH) * FL_ROW};
        fprintf(file,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"flame\" viewBox=\"0 0 %d %.0f\" "
                "font-family=\"monospace\" font-size=\"11\" role=\"img\" "
                "aria-label=\"Flame graph of page faults\">\n",
                FL_WIDTH, d.height);
        if (flame.node[0].faults > 0) {
            draw_node(&d, 0, 0, 0, FL_WIDTH);
        }
        fputs("</svg>\n", file);
    }
    fl_flame_clear(&flame);
}
