#include "faultstat/report/flame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The number of a new node; -1: no memory. */
static int add_node(struct fl_flame *flame, int frame)
{
    if (flame->count == flame->capacity) {
        size_t capacity = flame->capacity * 2 + 256;
        struct fl_flame_node *grown = reallocarray(flame->node, capacity, sizeof(*grown));
        if (grown == NULL) {
            return -1;
        }
        flame->node = grown;
        flame->capacity = capacity;
    }
    flame->node[flame->count] = (struct fl_flame_node){.frame = frame, .first = -1, .next = -1};
    return (int)flame->count++;
}

/* The child of `parent` for `frame`, made when new; -1: no memory. */
static int get_child(struct fl_flame *flame, int parent, int frame)
{
    for (int i = flame->node[parent].first; i >= 0; i = flame->node[i].next) {
        if (flame->node[i].frame == frame) {
            return i;
        }
    }
    int child = add_node(flame, frame);
    if (child >= 0) {
        flame->node[child].next = flame->node[parent].first;
        flame->node[parent].first = child;
    }
    return child;
}

static int add_stack(struct fl_flame *flame, const json_t *stack)
{
    const json_t *list = json_object_get(stack, "frames");
    double faults = json_number_value(json_object_get(stack, "faults"));
    size_t depth = json_array_size(list);
    int at = 0;
    flame->node[0].faults += faults;
    for (size_t i = 0; i < depth; i++) {
        at = get_child(flame, at, (int)json_integer_value(json_array_get(list, i)));
        if (at < 0) {
            return -ENOMEM;
        }
        flame->node[at].faults += faults;
    }
    return 0;
}

int fl_flame_get(const json_t *record, struct fl_flame *flame)
{
    memset(flame, 0, sizeof(*flame));
    int rc = add_node(flame, -1) == 0 ? 0 : -ENOMEM;
    const json_t *stack;
    size_t i;
    json_array_foreach(json_object_get(record, "stacks"), i, stack)
    {
        rc = rc != 0 ? rc : add_stack(flame, stack);
    }
    return rc;
}

void fl_flame_clear(struct fl_flame *flame)
{
    free(flame->node);
    flame->node = NULL;
}
