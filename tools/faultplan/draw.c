/* `faultplan draw`: a layout as a picture, address against time. A rectangle is a buffer; the line
 * above them is what lives at the time, so that what is white below it is what the layout costs.
 * Colours follow the reader's light or dark. */
#include "faultplan/faultplan.h"
#include "faultplan/live.h"
#include "faultplan/table.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEFT = 90, TOP = 56, WIDTH = 1180, HEIGHT = 640, BELOW = 48, RIGHT = 20, SHADES = 8 };

struct options {
    const char *path, *output;
};

struct picture {
    FILE *file;
    const struct fl_table *t;
    uint64_t begin, end;    /* time */
    uint64_t height, bound; /* bytes */
};

static const char doc[] =
    "Draw a layout as SVG, address against time. FILE is a table with the columns "
    "id,lower,upper,size and offset.\v"
    "Without a column offset the buffers are packed first. Exit status 125: a wrong option, or "
    "FILE is no such table.";

static const struct argp_option option[] = {
    {"output", 'o', "FILE", 0, "Write the picture to FILE (default: standard output)", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;

    switch (key) {
    case 'o':
        o->output = arg;
        return 0;
    default:
        return fl_table_parse_path(key, arg, state, &o->path);
    }
}

/* ---- what is drawn ---- */

static double x_of(const struct picture *p, uint64_t time)
{
    return LEFT + WIDTH * (double)(time - p->begin) / (double)(p->end - p->begin);
}

static double y_of(const struct picture *p, uint64_t bytes)
{
    return TOP + HEIGHT * (1 - (double)bytes / (double)p->height);
}

/* ---- the parts of the picture ---- */

static void draw_style(const struct picture *p)
{
    static const char *const shade[SHADES] = {"#7fc8f8", "#4fa3e0", "#3d7fc4", "#5a9367",
                                              "#8fbf6a", "#e8b94a", "#e58f45", "#c8553d"};

    fprintf(p->file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"13\">\n<style>\n"
            ":root { color-scheme: light dark; }\n"
            ".back { fill: #ffffff; } .text { fill: #222222; } .axis { stroke: #777777; }\n"
            ".grid { stroke: #dddddd; } .live { stroke: #111111; fill: none; }\n"
            ".buffer { stroke: #ffffff; stroke-width: 0.4; }\n"
            "@media (prefers-color-scheme: dark) {\n"
            ".back { fill: #16181d; } .text { fill: #dddddd; } .axis { stroke: #999999; }\n"
            ".grid { stroke: #333740; } .live { stroke: #f4f4f4; } .buffer { stroke: #16181d; }\n"
            "}\n",
            LEFT + WIDTH + RIGHT, TOP + HEIGHT + BELOW);
    for (int i = 0; i < SHADES; i++) {
        fprintf(p->file, ".s%d { fill: %s; }\n", i, shade[i]);
    }
    fprintf(p->file, "</style>\n<rect class=\"back\" width=\"100%%\" height=\"100%%\"/>\n");
}

/* The file's name, as XML likes it. */
static void draw_name(const struct picture *p, const struct options *o)
{
    const char *path = o->path;
    const char *name = strrchr(path, '/') == NULL ? path : strrchr(path, '/') + 1;

    for (; *name != '\0'; name++) {
        bool is_plain = strchr("<>&\"'", *name) == NULL && (unsigned char)*name >= ' ';
        fputc(is_plain ? *name : '_', p->file);
    }
}

static void draw_axes(const struct picture *p, const struct options *o)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    unsigned u = 0;
    double scale = 1;

    while (u < 4 && (double)p->height / scale >= 10 * 1024.0) {
        scale *= 1024;
        u++;
    }
    fprintf(p->file, "<text class=\"text\" x=\"%d\" y=\"22\" font-size=\"16\">", LEFT);
    draw_name(p, o);
    fprintf(p->file,
            "</text>\n<text class=\"text\" x=\"%d\" y=\"42\">%zu buffers, height %llu bytes, %.4f "
            "times the most "
            "that lives at once (the line)</text>\n",
            LEFT, p->t->n, (unsigned long long)p->height, (double)p->height / (double)p->bound);
    for (unsigned i = 0; i <= 5; i++) {
        double bytes = (double)p->height * i / 5, y = y_of(p, (uint64_t)bytes);
        fprintf(p->file, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", LEFT, y, LEFT + WIDTH);
        fprintf(p->file,
                "<text class=\"text\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g %s</text>\n",
                LEFT - 8, y + 4, bytes / scale, unit[u]);
        double time = (double)(p->end - p->begin) * i / 5;
        fprintf(p->file,
                "<text class=\"text\" x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%.6g</text>\n",
                LEFT + WIDTH * i / 5.0, TOP + HEIGHT + 20, i == 5 ? "end" : "middle",
                (double)p->begin + time);
    }
    fprintf(p->file, "<text class=\"text\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">time</text>\n",
            LEFT + WIDTH / 2, TOP + HEIGHT + 40);
}

/* Shades go by life: what lives long stands out from what comes and goes. */
static int shade_of(const struct picture *p, const struct fl_pack_buffer *b)
{
    uint64_t life = b->death - b->birth, all = p->end - p->begin;
    int shade = SHADES - 1;

    while (shade > 0 && life <= all / 2) {
        all /= 2;
        shade--;
    }
    return shade;
}

static void draw_buffers(const struct picture *p)
{
    for (size_t i = 0; i < p->t->n; i++) {
        const struct fl_pack_buffer *b = &p->t->buffer[i];
        if (!fl_live_is(b)) {
            continue;
        }
        double x = x_of(p, b->birth), y = y_of(p, b->offset + b->size);
        fprintf(
            p->file,
            "<rect class=\"buffer s%d\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>\n",
            shade_of(p, b), x, y, x_of(p, b->death) - x, y_of(p, b->offset) - y);
    }
}

static void draw_live(const struct picture *p, const struct fl_change *c, size_t n)
{
    uint64_t live = 0;

    fprintf(p->file, "<path class=\"live\" d=\"M%d %d", LEFT, TOP + HEIGHT);
    for (size_t i = 0; i < n;) {
        uint64_t time = c[i].time;
        for (; i < n && c[i].time == time; i++) {
            live = c[i].is_birth ? live + c[i].size : live - c[i].size;
        }
        fprintf(p->file, "H%.2fV%.2f", x_of(p, time), y_of(p, live));
    }
    fprintf(p->file, "\"/>\n<path class=\"axis\" d=\"M%d %dV%dH%d\" fill=\"none\"/>\n</svg>\n",
            LEFT, TOP, TOP + HEIGHT, LEFT + WIDTH);
}

static bool draw(const struct fl_table *t, const struct options *o, FILE *file)
{
    struct picture p = {.file = file, .t = t, .begin = UINT64_MAX, .height = 1, .bound = 1};
    size_t n;
    struct fl_change *c = fl_live_changes(t, &n);

    if (c == NULL) {
        return false;
    }
    p.bound = fl_max(p.bound, fl_live_most(c, n));
    for (size_t i = 0; i < t->n; i++) {
        const struct fl_pack_buffer *b = &t->buffer[i];
        if (fl_live_is(b)) {
            p.begin = b->birth < p.begin ? b->birth : p.begin;
            p.end = b->death > p.end ? b->death : p.end;
            p.height = b->offset + b->size > p.height ? b->offset + b->size : p.height;
        }
    }
    if (p.begin >= p.end) {
        p.begin = 0;
        p.end = 1;
    }
    draw_style(&p);
    draw_axes(&p, o);
    draw_buffers(&p);
    draw_live(&p, c, n);
    free(c);
    return true;
}

static bool draw_to(const struct fl_table *t, const struct options *o)
{
    FILE *file = o->output == NULL ? stdout : fopen(o->output, "we");
    const char *name = o->output == NULL ? "standard output" : o->output;

    bool is_good = file != NULL && draw(t, o, file) && fflush(file) == 0;
    if (file != NULL && o->output != NULL) {
        is_good &= fclose(file) == 0;
    }
    if (!is_good) {
        fprintf(stderr, "faultplan: %s: %s\n", name, strerror(errno));
    }
    return is_good;
}

static bool read_layout(const struct options *o, struct fl_table *t)
{
    struct fl_packing packing;

    if (!fl_table_read(t, o->path)) {
        return false;
    }
    if (!t->has_offset && !fl_table_pack(t, &packing)) {
        fl_table_free(t);
        return false;
    }
    return true;
}

int fl_plan_draw_main(int argc, char **argv)
{
    struct options o = {0};
    struct argp argp = {option, parse, "FILE", doc, fl_command_help, NULL, NULL};
    struct fl_table t;

    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (!read_layout(&o, &t)) {
        return FL_EXIT_OWN;
    }
    bool is_good = draw_to(&t, &o);
    fl_table_free(&t);
    return is_good ? 0 : FL_EXIT_OWN;
}
