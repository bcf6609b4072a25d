#include "faultstat/heap/image.h"

#include "faultstat/proc.h"
#include "faultstat/top/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FL_SLOTS_MOST = 1 << 16, FL_STRIDE_MOST = 1 << 20 };

static int check_head(const struct fl_profile_head *head)
{
    if (memcmp(head->magic, FL_PROFILE_MAGIC, sizeof(head->magic)) != 0) {
        return -EPROTO;
    }
    if (head->version != FL_PROFILE_VERSION) {
        return -EPROTONOSUPPORT;
    }
    bool is_good = head->slots <= FL_SLOTS_MOST && head->stride <= FL_STRIDE_MOST &&
                   head->stride >= sizeof(struct fl_profile_sample);
    return is_good ? 0 : -EPROTO;
}

static bool is_sample(const struct fl_profile_head *head, const struct fl_profile_sample *sample)
{
    return (sample->state == FL_PROFILE_LIVE || sample->state == FL_PROFILE_FREED) &&
           sample->len != 0 && sample->stack_len <= head->stride - sizeof(*sample);
}

/* Where the next sample goes, with room for its stack; NULL: no memory. */
static struct fl_image_sample *make(struct fl_image *image, const struct fl_profile_sample *head)
{
    struct fl_image_sample *s = &image->sample[image->count];
    *s = (struct fl_image_sample){*head, malloc(head->stack_len + 1)};
    return s->stack != NULL ? s : NULL;
}

/* One slot of a running process's. What changes meanwhile is left out. */
static int read_slot(const struct fl_live_memory *m, uint64_t at, struct fl_image *image)
{
    struct fl_profile_sample before, after;
    int rc = m->read(m, at, &before, sizeof(before));
    if (rc != 0 || !is_sample(&image->head, &before)) {
        return rc;
    }
    struct fl_image_sample *s = make(image, &before);
    if (s == NULL) {
        return -ENOMEM;
    }
    rc = m->read(m, at + sizeof(before), s->stack, before.stack_len);
    rc = rc == 0 ? m->read(m, at, &after, sizeof(after)) : rc;
    if (rc == 0 && after.number == before.number && after.state != FL_PROFILE_NONE) {
        image->count++;
    } else {
        free(s->stack);
    }
    return rc;
}

/* What the library and the kernel say of the process, beside its samples. */
static void read_figures(const struct fl_live_memory *m, uint64_t page, struct fl_image *image)
{
    struct fl_memory memory = {0};
    struct fl_live live;
    if (fl_live_read(m, page, &live) == 0) {
        image->head.live_bytes = live.value[FL_LIVE_LIVE_BYTES];
        image->head.kept_bytes = live.value[FL_LIVE_RESERVE_BYTES];
        image->head.held_bytes = live.value[FL_LIVE_HELD_BYTES];
    }
    (void)fl_proc_read_memory(m->pid, &memory);
    image->head.resident_bytes = memory.rss;
}

static int find_head(const struct fl_live_memory *m, uint64_t page, uint64_t *at)
{
    struct fl_live_page head; /* its first fields alone are read */
    int rc = m->read(m, page, &head, offsetof(struct fl_live_page, list));
    if (rc != 0) {
        return rc;
    }
    if (head.magic[0] == '\0') { /* filled with the first large request */
        return -EAGAIN;
    }
    if (memcmp(head.magic, FL_LIVE_MAGIC, sizeof(head.magic)) != 0 ||
        head.version != FL_LIVE_VERSION || head.size < sizeof(head)) {
        return -EPROTONOSUPPORT;
    }
    rc = m->read(m, page + offsetof(struct fl_live_page, profile), at, sizeof(*at));
    return rc == 0 && *at == 0 ? -ENODATA : rc;
}

static int make_room(struct fl_image *image)
{
    image->sample = calloc((size_t)image->head.slots + 1, sizeof(*image->sample));
    return image->sample != NULL ? 0 : -ENOMEM;
}

int fl_image_of_process(pid_t pid, struct fl_image *image)
{
    char path[40];
    struct fl_live_memory m = fl_live_memory_of(pid);
    uint64_t page = 0;
    uint64_t at = 0;
    memset(image, 0, sizeof(*image));
    int rc = fl_top_find_page(pid, &page);
    if (rc != 0 || page == 0) {
        return rc != 0 ? rc : -ENOENT;
    }
    rc = find_head(&m, page, &at);
    rc = rc == 0 ? m.read(&m, at, &image->head, sizeof(image->head)) : rc;
    rc = rc == 0 ? check_head(&image->head) : rc;
    rc = rc == 0 ? make_room(image) : rc;
    for (uint64_t i = 0; i < image->head.slots && rc == 0; i++) {
        rc = read_slot(&m, at + sizeof(image->head) + i * image->head.stride, image);
    }
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    image->maps = rc == 0 ? fopen(path, "re") : NULL;
    rc = rc == 0 && image->maps == NULL ? -errno : rc;
    if (rc == 0) {
        image->head.pid = (uint32_t)pid;
        read_figures(&m, page, image);
    }
    return rc;
}

static int read_all(FILE *file, void *out, size_t len)
{
    return len == 0 || fread(out, len, 1, file) == 1 ? 0 : -EPROTO;
}

/* One sample of a file's. */
static int read_next(FILE *file, struct fl_image *image)
{
    struct fl_profile_sample head;
    int rc = read_all(file, &head, sizeof(head));
    if (rc != 0 || head.stack_len > image->head.stride - sizeof(head)) {
        return -EPROTO;
    }
    struct fl_image_sample *s = make(image, &head);
    if (s == NULL) {
        return -ENOMEM;
    }
    rc = read_all(file, s->stack, head.stack_len);
    if (rc == 0 && is_sample(&image->head, &head)) {
        image->count++;
    } else {
        free(s->stack);
    }
    return rc;
}

int fl_image_of_file(const char *path, struct fl_image *image)
{
    memset(image, 0, sizeof(*image));
    image->maps = fopen(path, "re");
    if (image->maps == NULL) {
        return -errno;
    }
    int rc = read_all(image->maps, &image->head, sizeof(image->head));
    rc = rc == 0 ? check_head(&image->head) : rc;
    rc = rc == 0 ? make_room(image) : rc;
    for (uint32_t i = 0; i < image->head.slots && rc == 0; i++) {
        rc = read_next(image->maps, image);
    }
    return rc;
}

void fl_image_clear(struct fl_image *image)
{
    for (size_t i = 0; i < image->count; i++) {
        free(image->sample[i].stack);
    }
    free(image->sample);
    if (image->maps != NULL) {
        fclose(image->maps);
    }
}
