/* Other namespaces, of dlmopen(3), each with a libc of its own: its functions that are handed a
 * block are diverted, and no others. See past.h.
 *
 * Objects of such a namespace are bound before we see its libc, since the file that dlmopen(3)
 * names must be the first one there. When the program looks a name up in the namespace, which is
 * its way in, the table there is written, and the words that were bound by it. */
#include "runtime/past.h"
#include "runtime/past_blocks.h"
#include "runtime/runtime.h"
#include "runtime/symbols.h"

#include <dlfcn.h>
#include <sys/mman.h>

static _Atomic bool has_namespaces;

struct namespace
{
    const struct link_map *object; /* one of its */
    Lmid_t id;
};

static bool bind(void **word, void *to, struct fl_range kept)
{
    struct fl_range page = {fl_align_down((uintptr_t)word, fl_page.base), fl_page.base};
    bool is_kept = (uintptr_t)word - kept.base < kept.len;

    if (is_kept && fl_symbols_protect(page, PROT_READ | PROT_WRITE) != 0) {
        return false;
    }
    __atomic_store_n(word, to, __ATOMIC_RELEASE);
    if (is_kept) {
        (void)fl_symbols_protect(page, PROT_READ);
    }
    return true;
}

/* What was bound to a function of `calls` before its name was diverted. */
static bool divert_bound(const struct fl_object *e, const struct fl_diversion calls[FL_PAST_ALL])
{
    struct fl_range kept = fl_object_protected(e);
    bool done = true;

    for (size_t t = 0; t < 2; t++) {
        for (size_t i = 0; i < e->bound[t].count; i++) {
            void **word = fl_object_word(e, &e->bound[t].first[i]);
            for (size_t k = 0; word != NULL && k < FL_PAST_ALL; k++) {
                if (calls[k].was != NULL && *word == calls[k].was) {
                    done = bind(word, calls[k].to, kept) && done;
                }
            }
        }
    }
    return done;
}

static bool divert_objects(const struct link_map *m, const struct fl_diversion calls[FL_PAST_ALL])
{
    struct fl_object e;
    bool done = true;

    for (; m != NULL; m = m->l_next) {
        if (fl_symbols_read(&e, m)) {
            done = divert_bound(&e, calls) && done;
        }
    }
    return done;
}

static int divert_namespace(struct dl_phdr_info *info, size_t size, void *arg)
{
    const struct namespace *in = arg;
    struct fl_diversion calls[FL_PAST_ALL];
    struct fl_object libc;

    (void)info, (void)size;
    if (fl_symbols_of_libc(in->object, &libc) == NULL ||
        fl_symbols_function(&libc, fl_past_names[FL_PAST_FREE]) == NULL) {
        return 1; /* it has no libc, or that is done */
    }
    bool done = in->id < FL_PAST_NAMESPACES && fl_symbols_open(&libc);
    if (done) {
        for (unsigned i = 0; i < FL_PAST_ALL; i++) {
            void *was = fl_symbols_function(&libc, fl_past_names[i]);
            calls[i] = (struct fl_diversion){NULL, was};
            if (was != NULL) {
                calls[i].to = fl_past_block_call((unsigned)in->id, i, was);
                fl_symbols_divert(&libc, calls[i]);
            }
        }
        fl_symbols_close(&libc);
        done = divert_objects(fl_symbols_first(in->object), calls);
    }
    if (!done) {
        fl_past_give_up(
            "the free of a namespace of dlmopen(3) cannot be told of large blocks: from here "
            "on they are the next allocator's");
    }
    return 1;
}

void fl_past_namespace(void)
{
    (void)fl_boot_for_call();
    atomic_store_explicit(&has_namespaces, true, memory_order_relaxed);
}

void fl_past_namespace_of(void *handle)
{
    struct namespace in = {.object = NULL};
    void *map = NULL;

    if (atomic_load_explicit(&has_namespaces, memory_order_relaxed) &&
        dlinfo(handle, RTLD_DI_LMID, &in.id) == 0 && in.id != LM_ID_BASE &&
        dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL && fl_past_is_wanted()) {
        in.object = map;
        (void)dl_iterate_phdr(divert_namespace, &in);
    }
}
