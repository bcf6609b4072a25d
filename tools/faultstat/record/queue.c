#include "faultstat/record/queue.h"

#include <stdlib.h>
#include <string.h>

static bool make_room(struct fl_queue *queue, size_t len)
{
    if (queue->used + len > queue->room) {
        size_t room = (queue->used + len) * 2;
        unsigned char *grown = realloc(queue->bytes, room);
        if (grown == NULL) {
            return false;
        }
        queue->bytes = grown;
        queue->room = room;
    }
    if (queue->count == queue->capacity) {
        size_t capacity = queue->capacity * 2 + 64;
        struct fl_queued *grown = reallocarray(queue->item, capacity, sizeof(*grown));
        if (grown == NULL) {
            return false;
        }
        queue->item = grown;
        queue->capacity = capacity;
    }
    return true;
}

void fl_queue_add(struct fl_queue *queue, uint64_t time_ns, const void *record, size_t len)
{
    if (!make_room(queue, len)) {
        queue->dropped++;
        return;
    }
    memcpy(queue->bytes + queue->used, record, len);
    queue->item[queue->count++] = (struct fl_queued){time_ns, queue->used, len};
    queue->used += len;
}

/* By time; of one time as they came. */
static int compare_queued(const void *a, const void *b)
{
    const struct fl_queued *x = a;
    const struct fl_queued *y = b;
    if (x->time_ns != y->time_ns) {
        return x->time_ns > y->time_ns ? 1 : -1;
    }
    return (x->at > y->at) - (x->at < y->at);
}

void fl_queue_flush(struct fl_queue *queue, uint64_t before_ns,
                    void (*take)(void *arg, const void *record, size_t len), void *arg)
{
    size_t ready = 0;
    if (queue->count == 0) {
        return;
    }
    qsort(queue->item, queue->count, sizeof(*queue->item), compare_queued);
    while (ready < queue->count && queue->item[ready].time_ns < before_ns) {
        take(arg, queue->bytes + queue->item[ready].at, queue->item[ready].len);
        ready++;
    }
    /* What is left moves to a buffer of its own, in its order. */
    struct fl_queue rest = {.dropped = queue->dropped};
    for (size_t i = ready; i < queue->count; i++) {
        fl_queue_add(&rest, queue->item[i].time_ns, queue->bytes + queue->item[i].at,
                     queue->item[i].len);
    }
    if (rest.count == 0) {
        queue->used = queue->count = 0; /* the buffers stay for the next round */
        return;
    }
    fl_queue_clear(queue);
    *queue = rest;
}

void fl_queue_clear(struct fl_queue *queue)
{
    free(queue->bytes);
    free(queue->item);
    memset(queue, 0, sizeof(*queue));
}
