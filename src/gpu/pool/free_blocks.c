/* Free blocks by size: for best fit a splay tree a stream, in order of (size, address); for exact
 * sizes a bin a stream and size, last in first out. Lists of blocks are here too.
 *
 * Source of the tree: Sleator and Tarjan, Self-Adjusting Binary Search Trees (1985), top-down. What
 * was used last is at the root, and a step's requests come in the same order each time. */
#include "gpu/pool/pool.h"

#include <stdlib.h>

void fl_list_append(struct fl_pool_list *l, struct fl_pool_block *b)
{
    b->older = l->last;
    b->newer = NULL;
    *(l->last != NULL ? &l->last->newer : &l->first) = b;
    l->last = b;
}

void fl_list_prepend(struct fl_pool_list *l, struct fl_pool_block *b)
{
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
    *(b->older != NULL ? &b->older->newer : &l->first) = b;
    *(b->newer != NULL ? &b->newer->older : &l->last) = b;
}

void fl_list_remove(struct fl_pool_list *l, struct fl_pool_block *b)
{
    *(b->older != NULL ? &b->older->newer : &l->first) = b->newer;
    *(b->newer != NULL ? &b->newer->older : &l->last) = b->older;
    b->older = b->newer = NULL;
}

void fl_list_replace(struct fl_pool_list *l, struct fl_pool_block *old, struct fl_pool_block *b)
{
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
    return (*root)->right;
}

/* ---- bins ---- */

static size_t bin_home(const struct fl_gpu_pool *p, const struct fl_pool_stream *s, size_t len)
{
    return ((((uintptr_t)s >> 4) ^ (len >> 5)) * UINT64_C(0x9e3779b97f4a7c15) >> 24) &
           (p->bins - 1);
}

static struct fl_pool_bin *bin_find(const struct fl_gpu_pool *p, const struct fl_pool_stream *s,
                                    size_t len)
{
    if (p->bins == 0) {
        return NULL;
    }
    for (size_t i = bin_home(p, s, len);; i = (i + 1) & (p->bins - 1)) {
        struct fl_pool_bin *bin = &p->bin[i];
        if (bin->len == 0) {
            return NULL;
        }
        if (bin->len == len && bin->stream == s) {
            return bin;
        }
    }
}

static struct fl_pool_bin *bin_add(struct fl_gpu_pool *p, const struct fl_pool_stream *s,
                                   size_t len)
{
    size_t i = bin_home(p, s, len);

    while (p->bin[i].len != 0) {
        i = (i + 1) & (p->bins - 1);
    }
    p->bin[i] = (struct fl_pool_bin){.stream = s, .len = len};
    p->bins_used++;
    return &p->bin[i];
}

static bool bins_grow(struct fl_gpu_pool *p)
{
    struct fl_pool_bin *old = p->bin;
    size_t n = p->bins;
    struct fl_pool_bin *fresh = calloc(n == 0 ? 64 : 2 * n, sizeof *fresh);

    if (fresh == NULL) {
        return false;
    }
    p->bin = fresh;
    p->bins = n == 0 ? 64 : 2 * n;
    p->bins_used = 0;
    for (size_t i = 0; i < n; i++) {
        if (old[i].top != NULL || (old[i].len != 0 && old[i].stream == NULL)) {
            bin_add(p, old[i].stream, old[i].len)->top = old[i].top;
        }
    }
    free(old);
    return true;
}

static struct fl_pool_bin *bin_get(struct fl_gpu_pool *p, const struct fl_pool_stream *s,
                                   size_t len)
{
    struct fl_pool_bin *bin = bin_find(p, s, len);

    if (bin != NULL) {
        return bin;
    }
    if (2 * (p->bins_used + 1) > p->bins && !bins_grow(p)) {
        return NULL;
    }
    return bin_add(p, s, len);
}

bool fl_set_prepare(struct fl_gpu_pool *p, size_t len)
{
    return !p->strategy->is_binned || bin_get(p, NULL, len) != NULL;
}

static void bin_push(struct fl_pool_bin *bin, struct fl_pool_block *b)
{
    b->left = bin->top;
    b->right = NULL;
    if (bin->top != NULL) {
        bin->top->right = b;
    }
    bin->top = b;
}

/* Without memory for a stream's own bin its blocks lie among those that are safe, which are looked
 * at one by one. */
static struct fl_pool_bin *bin_of(struct fl_gpu_pool *p, const struct fl_pool_block *b)
{
    struct fl_pool_bin *bin = bin_find(p, b->stream, b->len);

    if (bin != NULL && (bin->top == b || b->right != NULL)) {
        return bin;
    }
    return bin_find(p, NULL, b->len);
}

static void bin_remove(struct fl_gpu_pool *p, struct fl_pool_block *b)
{
    if (b->right != NULL) {
        b->right->left = b->left;
    } else {
        bin_of(p, b)->top = b->left;
    }
    if (b->left != NULL) {
        b->left->right = b->right;
    }
    b->left = b->right = NULL;
}

static struct fl_pool_block *bin_top(const struct fl_gpu_pool *p, const struct fl_pool_stream *s,
                                     size_t len)
{
    const struct fl_pool_bin *bin = bin_find(p, s, len);
    struct fl_pool_block *b = bin != NULL ? bin->top : NULL;

    while (b != NULL && b->stream != s) {
        b = b->left;
    }
    return b;
}

/* ---- both ---- */

static struct fl_pool_block **root_of(struct fl_gpu_pool *p, struct fl_pool_stream *s, bool slab)
{
    return s != NULL ? &s->root[slab] : &p->root[slab];
}

void fl_set_insert(struct fl_gpu_pool *p, struct fl_pool_block *b)
{
    if (!p->strategy->is_binned) {
        tree_insert(root_of(p, b->stream, b->chunk->is_slab), b);
        return;
    }
    struct fl_pool_bin *bin = bin_get(p, b->stream, b->len);
    bin_push(bin != NULL ? bin : bin_find(p, NULL, b->len), b);
}

void fl_set_remove(struct fl_gpu_pool *p, struct fl_pool_block *b)
{
    if (p->strategy->is_binned) {
        bin_remove(p, b);
    } else {
        tree_remove(root_of(p, b->stream, b->chunk->is_slab), b);
    }
}

struct fl_pool_block *fl_set_find(struct fl_gpu_pool *p, struct fl_pool_stream *s, size_t len,
                                  bool slab)
{
    return p->strategy->is_binned ? bin_top(p, s, len) : tree_find(root_of(p, s, slab), len);
}
