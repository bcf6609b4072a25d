#include "faultstat/record/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FL_ALIGN = 16, FL_FIRST_SLOTS = 1024 };

static uint32_t hash_of(const unsigned char *key, size_t len)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ key[i]) * UINT64_C(0x100000001b3);
    }
    return (uint32_t)(hash ^ (hash >> 32));
}

/* Place every number anew in twice as many slots. */
static int grow_slots(struct fl_intern *table)
{
    size_t slots = table->slots != 0 ? table->slots * 2 : FL_FIRST_SLOTS;
    uint32_t *slot = calloc(slots, sizeof(*slot));
    if (slot == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < table->count; i++) {
        size_t at = table->item[i].hash & (slots - 1);
        while (slot[at] != 0) {
            at = (at + 1) & (slots - 1);
        }
        slot[at] = (uint32_t)i + 1;
    }
    free(table->slot);
    table->slot = slot;
    table->slots = slots;
    return 0;
}

static int make_room(struct fl_intern *table, size_t len)
{
    if (table->count * 2 >= table->slots && grow_slots(table) != 0) {
        return -ENOMEM;
    }
    if (table->count == table->capacity) {
        size_t capacity = table->capacity * 2 + 64;
        struct fl_intern_item *grown = reallocarray(table->item, capacity, sizeof(*grown));
        if (grown == NULL) {
            return -ENOMEM;
        }
        table->item = grown;
        table->capacity = capacity;
    }
    if (table->used + len > table->room) {
        size_t room = (table->used + len) * 2 + 4096;
        unsigned char *grown = realloc(table->bytes, room);
        if (grown == NULL) {
            return -ENOMEM;
        }
        table->bytes = grown;
        table->room = room;
    }
    return 0;
}

uint32_t fl_intern(struct fl_intern *table, const void *key, size_t len)
{
    size_t padded = (len + FL_ALIGN - 1) / FL_ALIGN * FL_ALIGN;
    uint32_t hash = hash_of(key, len);
    if (make_room(table, padded) != 0) {
        return FL_INTERN_NONE;
    }
    size_t at = hash & (table->slots - 1);
    for (; table->slot[at] != 0; at = (at + 1) & (table->slots - 1)) {
        const struct fl_intern_item *item = &table->item[table->slot[at] - 1];
        if (item->hash == hash && item->len == len &&
            memcmp(table->bytes + item->at, key, len) == 0) {
            return table->slot[at] - 1;
        }
    }
    memcpy(table->bytes + table->used, key, len);
    table->item[table->count] = (struct fl_intern_item){table->used, (uint32_t)len, hash};
    table->used += padded;
    table->slot[at] = (uint32_t)++table->count;
    return table->slot[at] - 1;
}

const void *fl_intern_key(const struct fl_intern *table, uint32_t number, size_t *len)
{
    *len = table->item[number].len;
    return table->bytes + table->item[number].at;
}

void fl_intern_clear(struct fl_intern *table)
{
    free(table->bytes);
    free(table->item);
    free(table->slot);
    memset(table, 0, sizeof(*table));
}
