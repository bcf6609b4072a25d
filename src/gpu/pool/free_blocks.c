/* Free blocks by size: a splay tree a stream, in order of (size, address). Lists of blocks are here
 * too.
 *
 * Source of the tree: Sleator and Tarjan, Self-Adjusting Binary Search Trees (1985), top-down. What
 * was used last is at the root, and a step's requests come in the same order each time. */
#include "gpu/pool/pool.h"

#include <stdlib.h>

void fl_list_append(struct fl_pool_list *l, struct fl_pool_block *b)
{
    fl_assert((l->first == NULL) == (l->last == NULL));
    b->older = l->last;
    b->newer = NULL;
    *(l->last != NULL ? &l->last->newer : &l->first) = b;
    l->last = b;
}

void fl_list_prepend(struct fl_pool_list *l, struct fl_pool_block *b)
{
    fl_assert((l->first == NULL) == (l->last == NULL));
    b->older = NULL;
    b->newer = l->first;
    *(l->first != NULL ? &l->first->older : &l->last) = b;
    l->first = b;
}

void fl_list_insert(struct fl_pool_list *l, struct fl_pool_block *b)
{
    struct fl_pool_block *older = l->last;

    while (older != NULL && older->stamp > b->stamp) {
        older = older->older;
    }
    b->older = older;
    b->newer = older != NULL ? older->newer : l->first;
    fl_assert(b->newer == NULL || b->newer->stamp > b->stamp);
    *(b->older != NULL ? &b->older->newer : &l->first) = b;
    *(b->newer != NULL ? &b->newer->older : &l->last) = b;
}

void fl_list_remove(struct fl_pool_list *l, struct fl_pool_block *b)
{
    fl_assert((b->older != NULL ? b->older->newer : l->first) == b);
    fl_assert((b->newer != NULL ? b->newer->older : l->last) == b);
    *(b->older != NULL ? &b->older->newer : &l->first) = b->newer;
    *(b->newer != NULL ? &b->newer->older : &l->last) = b->older;
    b->older = b->newer = NULL;
}

void fl_list_replace(struct fl_pool_list *l, struct fl_pool_block *old, struct fl_pool_block *b)
{
    fl_assert((old->older != NULL ? old->older->newer : l->first) == old);
    fl_assert((old->newer != NULL ? old->newer->older : l->last) == old);
    b->older = old->older;
    b->newer = old->newer;
    *(b->older != NULL ? &b->older->newer : &l->first) = b;
    *(b->newer != NULL ? &b->newer->older : &l->last) = b;
    old->older = old->newer = NULL;
}

/* ---- tree ---- */

static int order(size_t len, uint64_t address, const struct fl_pool_block *b)
{
    if (len != b->len) {
        return len < b->len ? -1 : 1;
    }
    return address < b->address ? -1 : address > b->address;
}

static struct fl_pool_block *splay(struct fl_pool_block *t, size_t len, uint64_t address)
{
    struct fl_pool_block *less = NULL, *more = NULL;             /* what has been passed */
    struct fl_pool_block **less_end = &less, **more_end = &more; /* where it goes on */

    for (;;) {
        int side = order(len, address, t);
        struct fl_pool_block *down = side < 0 ? t->left : t->right;
        if (side == 0 || down == NULL) {
            break;
        }
        if (side < 0) {
            if (order(len, address, down) < 0) {
                t->left = down->right;
                down->right = t;
                t = down;
                down = t->left;
                if (down == NULL) {
                    break;
                }
            }
            *more_end = t;
            more_end = &t->left;
        } else {
            if (order(len, address, down) > 0) {
                t->right = down->left;
                down->left = t;
                t = down;
                down = t->right;
                if (down == NULL) {
                    break;
                }
            }
            *less_end = t;
            less_end = &t->right;
        }
        t = down;
    }
    *less_end = t->left;
    *more_end = t->right;
    t->left = less;
    t->right = more;
    return t;
}

static void tree_insert(struct fl_pool_block **root, struct fl_pool_block *b)
{
    struct fl_pool_block *t = *root;

    b->left = b->right = NULL;
    if (t != NULL) {
        t = splay(t, b->len, b->address);
        fl_assert(order(b->len, b->address, t) != 0);
        if (order(b->len, b->address, t) < 0) {
            b->left = t->left;
            b->right = t;
            t->left = NULL;
        } else {
            b->right = t->right;
            b->left = t;
            t->right = NULL;
        }
    }
    *root = b;
}

static void tree_remove(struct fl_pool_block **root, struct fl_pool_block *b)
{
    struct fl_pool_block *t = splay(*root, b->len, b->address); /* is b now */

    fl_assert(t == b);
    if (t->left == NULL) {
        *root = t->right;
    } else {
        *root = splay(t->left, b->len, b->address);
        (*root)->right = t->right;
    }
    b->left = b->right = NULL;
}

static struct fl_pool_block *tree_find(struct fl_pool_block **root, size_t len)
{
    if (*root == NULL) {
        return NULL;
    }
    *root = splay(*root, len, 0);
    if ((*root)->len >= len) {
        return *root;
    }
    if ((*root)->right != NULL) {
        (*root)->right = splay((*root)->right, len, 0);
    }
    fl_assert((*root)->right == NULL || (*root)->right->len >= len);
    return (*root)->right;
}

/* ---- sets ---- */

static struct fl_pool_block **root_of(struct fl_gpu_pool *p, struct fl_pool_stream *s, bool slab)
{
    return s != NULL ? &s->root[slab] : &p->root[slab];
}

void fl_set_insert(struct fl_gpu_pool *p, struct fl_pool_block *b)
{
    fl_assert(fl_pool_is_locked(p) && b->state == FL_BLOCK_FREE);
    tree_insert(root_of(p, b->stream, b->chunk->is_slab), b);
}

void fl_set_remove(struct fl_gpu_pool *p, struct fl_pool_block *b)
{
    fl_assert(fl_pool_is_locked(p) && b->state == FL_BLOCK_FREE);
    tree_remove(root_of(p, b->stream, b->chunk->is_slab), b);
}

struct fl_pool_block *fl_set_find(struct fl_gpu_pool *p, struct fl_pool_stream *s, size_t len,
                                  bool slab)
{
    struct fl_pool_block *b = tree_find(root_of(p, s, slab), len);

    fl_assert(fl_pool_is_locked(p));
    fl_assert(b == NULL || (b->state == FL_BLOCK_FREE && b->len >= len));
    return b != NULL && p->strategy->is_binned && b->len != len ? NULL : b;
}
