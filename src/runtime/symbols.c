/* Symbol tables of loaded objects, which are read and written. See symbols.h. */
#include "runtime/symbols.h"
#include "runtime/runtime.h"

#include <sys/mman.h>

/* The linker's: this library, or the program it is part of. */
/* NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
extern FL_HIDDEN const char __ehdr_start[], _end[];

bool fl_symbols_is_ours(const void *f)
{
    return (uintptr_t)f - (uintptr_t)__ehdr_start < (uintptr_t)(_end - __ehdr_start);
}

bool fl_symbols_read(struct fl_object *out, const struct link_map *m)
{
    return fl_object_read(out, m->l_addr, m->l_ld);
}

bool fl_symbols_read_us(struct fl_object *out)
{
    return fl_object_read(out, (uintptr_t)__ehdr_start, _DYNAMIC);
}

static bool has(const struct link_map *m, const char *name)
{
    struct fl_object e;

    return fl_symbols_read(&e, m) && fl_object_symbol(&e, name, NULL) != NULL;
}

/* The first of the objects from `m` on that defines `name`; NULL: none. */
static const struct link_map *find_object(const struct link_map *m, const char *name)
{
    while (m != NULL && !has(m, name)) {
        m = m->l_next;
    }
    return m;
}

const struct link_map *fl_symbols_first(const struct link_map *m)
{
    while (m->l_prev != NULL) {
        m = m->l_prev;
    }
    return m;
}

const struct link_map *fl_symbols_of_libc(const struct link_map *m, struct fl_object *out)
{
    const struct link_map *libc = find_object(fl_symbols_first(m), fl_of_libc);

    return libc != NULL && fl_symbols_read(out, libc) ? libc : NULL;
}

/* The pages of the table; len 0: code may lie in them. What comes before it and behind it to the
 * end of its names is for the loader. */
static struct fl_range table_pages(const struct fl_object *e)
{
    uintptr_t from = fl_align_down((uintptr_t)e->symbol, fl_page.base);
    uintptr_t to = fl_align_up((uintptr_t)&e->symbol[fl_object_end(e)], fl_page.base);
    bool whole = (uintptr_t)e->symbol < (uintptr_t)e->string &&
                 to <= fl_align_up((uintptr_t)e->string + e->string_len, sizeof(uintptr_t));

    return (struct fl_range){from, whole && from >= e->base ? to - from : 0};
}

int fl_symbols_protect(struct fl_range r, int prot)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the loader's pages */
    return fl_libc.mprotect((void *)r.base, r.len, prot);
}

bool fl_symbols_open(const struct fl_object *e)
{
    struct fl_range pages = table_pages(e);

    return pages.len != 0 && fl_symbols_protect(pages, PROT_READ | PROT_WRITE) == 0;
}

void fl_symbols_close(const struct fl_object *e)
{
    (void)fl_symbols_protect(table_pages(e), PROT_READ);
}

void *fl_symbols_function(const struct fl_object *libc, const char *name)
{
    const ElfW(Sym) *s = fl_object_symbol(libc, name, NULL);
    void *f = s != NULL ? fl_object_at(libc, s->st_value) : NULL;

    return fl_symbols_is_ours(f) ? NULL : f;
}

void fl_symbols_divert(const struct fl_object *libc, struct fl_diversion one)
{
    size_t end = fl_object_end(libc);

    for (size_t i = fl_object_first(libc); i < end; i++) {
        ElfW(Sym) *s = &libc->symbol[i];
        if (fl_object_at(libc, s->st_value) == one.was) {
            __atomic_store_n(&s->st_value, (uintptr_t)one.to - libc->base, __ATOMIC_RELEASE);
        }
    }
}
