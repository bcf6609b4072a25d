/* Gives equal keys the same small number: places, names and whole stacks. Keys are bytes.
 * I1: number i is the i-th different key that came, from 0. */
#ifndef FAULTLESS_FAULTSTAT_RECORD_INTERN_H
#define FAULTLESS_FAULTSTAT_RECORD_INTERN_H

#include <stddef.h>
#include <stdint.h>

#define FL_INTERN_NONE UINT32_MAX

struct fl_intern_item {
    size_t at; /* of the key in `bytes` */
    uint32_t len;
    uint32_t hash;
};

struct fl_intern {
    unsigned char *bytes;
    size_t used;
    size_t room;
    struct fl_intern_item *item;
    size_t count;
    size_t capacity;
    uint32_t *slot; /* number + 1; 0 = empty */
    size_t slots;   /* a power of two */
};

/* The number of a key, made when new. FL_INTERN_NONE: no memory. */
uint32_t fl_intern(struct fl_intern *table, const void *key, size_t len);

/* The key of a number, aligned as for any type. Good until the next fl_intern. */
const void *fl_intern_key(const struct fl_intern *table, uint32_t number, size_t *len);

void fl_intern_clear(struct fl_intern *table);

#endif
