/* One pass over the lists; each element is read once, and all terms of its list are taken from
 * it. */
#include "faultstat/top/live.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

enum {
    FL_LISTS_MOST = 32, /* of a newer library, which may have more */
    FL_TERMS_MOST = 255,
    FL_PAGE_MOST = 65536,
    FL_SEGMENTS_MOST = 64,
    FL_NOTES_MOST = 4096,
    FL_WORDS_AT_ONCE = 512,
    FL_SHIFT_MOST = 30,
};

static int read_memory(const struct fl_live_memory *m, uint64_t at, void *out, size_t len)
{
    struct iovec to = {out, len};
    struct iovec from = {(void *)(uintptr_t)at, len}; /* NOLINT(performance-no-int-to-ptr) */
    ssize_t n = process_vm_readv(m->pid, &to, 1, &from, 1, 0);
    return n < 0 ? -errno : (size_t)n == len ? 0 : -EFAULT;
}

struct fl_live_memory fl_live_memory_of(pid_t pid)
{
    return (struct fl_live_memory){read_memory, pid};
}

/* ---- where the page is ---- */

/* Of notes that lie at `at`, ours: the address of its contents; 0: it is not there. */
static uint64_t find_note(const char *notes, size_t len, uint64_t at)
{
    static const char name[] = "faultless";
    Elf64_Nhdr head;
    for (size_t i = 0; len - i >= sizeof(head);) {
        memcpy(&head, notes + i, sizeof(head));
        uint64_t text = ((uint64_t)head.n_namesz + 3) & ~UINT64_C(3);
        uint64_t contents = ((uint64_t)head.n_descsz + 3) & ~UINT64_C(3);
        i += sizeof(head);
        if (text + contents > len - i) {
            return 0;
        }
        if (head.n_type == FL_LIVE_NOTE && head.n_namesz == sizeof(name) &&
            head.n_descsz == sizeof(int64_t) && memcmp(notes + i, name, sizeof(name)) == 0) {
            return at + i + text;
        }
        i += text + contents;
    }
    return 0;
}

static int read_note(const struct fl_live_memory *m, uint64_t at, uint64_t len, uint64_t *page)
{
    char notes[FL_NOTES_MOST];
    int64_t offset;
    if (len > sizeof(notes)) {
        return -ENOENT;
    }
    int rc = m->read(m, at, notes, len);
    uint64_t note = rc == 0 ? find_note(notes, len, at) : 0;
    if (note == 0) {
        return rc != 0 ? rc : -ENOENT;
    }
    memcpy(&offset, notes + (note - at), sizeof(offset));
    *page = note + (uint64_t)offset;
    return 0;
}

int fl_live_find(const struct fl_live_memory *m, uint64_t base, uint64_t *page)
{
    Elf64_Ehdr head;
    Elf64_Phdr segment[FL_SEGMENTS_MOST];
    int rc = m->read(m, base, &head, sizeof(head));
    if (rc != 0) {
        return rc;
    }
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_phentsize != sizeof(segment[0]) || head.e_phnum > FL_SEGMENTS_MOST) {
        return -ENOEXEC;
    }
    rc = m->read(m, base + head.e_phoff, segment, head.e_phnum * sizeof(segment[0]));
    for (size_t i = 0; rc == 0 && i < head.e_phnum; i++) {
        if (segment[i].p_type == PT_NOTE &&
            read_note(m, base + segment[i].p_vaddr, segment[i].p_memsz, page) == 0) {
            return 0;
        }
    }
    return rc != 0 ? rc : -ENOENT;
}

/* ---- what it leads to ---- */

struct reading {
    const struct fl_live_memory *memory;
    const struct fl_live_list *list;
    const struct fl_live_term *term;
    size_t lists, terms;
    struct fl_live *out;
    size_t reads;  /* so far */
    uint64_t bits; /* likewise */
    unsigned char element[FL_LIVE_ELEMENT];
};

static int read_some(struct reading *r, uint64_t at, void *out, size_t len)
{
    return ++r->reads > FL_LIVE_READS_MOST ? -E2BIG : r->memory->read(r->memory, at, out, len);
}

/* A word of the element at hand. It is inside: check_term. */
static uint64_t word_at(const struct reading *r, const struct fl_live_list *l, uint32_t offset,
                        unsigned width)
{
    uint64_t word = 0;
    memcpy(&word, r->element + (offset - l->from), width);
    return word;
}

static int count_bits(struct reading *r, uint64_t at, uint64_t bits, uint64_t *out)
{
    uint64_t word[FL_WORDS_AT_ONCE];
    *out = 0;
    if (bits > FL_LIVE_BITS_MOST || r->bits + bits > FL_LIVE_BITS_MOST) {
        return -E2BIG;
    }
    r->bits += bits;
    for (uint64_t i = 0; i < bits; i += sizeof(word) * 8) {
        uint64_t left = bits - i < sizeof(word) * 8 ? bits - i : sizeof(word) * 8;
        size_t words = (size_t)(left + 63) / 64;
        int rc = read_some(r, at + i / 8, word, words * sizeof(word[0]));
        if (rc != 0) {
            return rc;
        }
        if (left % 64 != 0) {
            word[words - 1] &= UINT64_MAX >> (64 - left % 64);
        }
        for (size_t k = 0; k < words; k++) {
            *out += (uint64_t)__builtin_popcountll(word[k]);
        }
    }
    return 0;
}

static int add_term(struct reading *r, const struct fl_live_list *l, const struct fl_live_term *t)
{
    uint64_t figure = t->figure;
    uint64_t n = 1;
    int rc = 0;
    if (t->when != FL_LIVE_ALWAYS && word_at(r, l, t->when, t->when_width) == 0) {
        return 0;
    }
    uint64_t word = t->how != FL_LIVE_ONE ? word_at(r, l, t->offset, t->width) : 0;
    if (t->how == FL_LIVE_ADD) {
        n = word;
    } else if (t->how == FL_LIVE_TALLY) {
        figure = word < FL_LIVE_STATES ? figure + word : FL_LIVE_FIGURES;
    } else if (t->how == FL_LIVE_BITS) {
        rc = count_bits(r, word, word_at(r, l, t->bits, sizeof(uint64_t)), &n);
    }
    if (rc == 0 && figure < FL_LIVE_FIGURES) {
        r->out->value[figure] += t->subtracts ? -(n << t->shift) : n << t->shift;
    }
    return rc;
}

/* All terms of list `i`, of the element at `at`. */
static int add_element(struct reading *r, size_t i, uint64_t at)
{
    const struct fl_live_list *l = &r->list[i];
    int rc = read_some(r, at + l->from, r->element, l->size);
    for (size_t k = 0; k < r->terms && rc == 0; k++) {
        rc = r->term[k].list == i ? add_term(r, l, &r->term[k]) : 0;
    }
    return rc;
}

static int add_row(struct reading *r, size_t i)
{
    const struct fl_live_list *l = &r->list[i];
    int rc = 0;
    for (uint64_t k = 0; k < l->count && rc == 0; k++) {
        rc = add_element(r, i, l->at + k * l->next);
    }
    return rc;
}

static int add_chain(struct reading *r, size_t i)
{
    const struct fl_live_list *l = &r->list[i];
    uint64_t at = 0;
    int rc = read_some(r, l->at, &at, sizeof(at));
    while (rc == 0 && at != 0) {
        rc = add_element(r, i, at);
        at = l->next == FL_LIVE_LAST ? 0 : word_at(r, l, l->next, sizeof(at));
    }
    return rc;
}

static int add_table(struct reading *r, size_t i)
{
    const struct fl_live_list *l = &r->list[i];
    uint64_t at;
    uint32_t n = 0;
    int rc = read_some(r, l->count, &n, sizeof(n));
    for (uint64_t k = 0; k < n && rc == 0; k++) {
        rc = read_some(r, l->at + k * sizeof(at), &at, sizeof(at));
        rc = rc == 0 ? add_element(r, i, at) : rc;
    }
    return rc;
}

/* ---- does it make sense? ---- */

static bool is_inside(const struct fl_live_list *l, uint32_t offset, uint32_t width)
{
    return offset >= l->from && offset - l->from <= l->size &&
           width <= l->size - (offset - l->from);
}

static bool is_width(unsigned width)
{
    return width == 1 || width == 4 || width == 8;
}

static bool check_list(const struct fl_live_list *l)
{
    bool is_chain = l->shape == FL_LIVE_CHAIN && l->next != FL_LIVE_LAST;
    return l->shape <= FL_LIVE_TABLE && l->size <= FL_LIVE_ELEMENT &&
           (!is_chain || is_inside(l, l->next, sizeof(uint64_t)));
}

static bool check_term(const struct reading *r, const struct fl_live_term *t)
{
    if (t->list >= r->lists || t->how > FL_LIVE_BITS || t->shift > FL_SHIFT_MOST) {
        return false;
    }
    const struct fl_live_list *l = &r->list[t->list];
    bool has_word =
        t->how == FL_LIVE_ONE || (is_width(t->width) && is_inside(l, t->offset, t->width));
    bool has_when = t->when == FL_LIVE_ALWAYS ||
                    (is_width(t->when_width) && is_inside(l, t->when, t->when_width));
    bool has_bits = t->how != FL_LIVE_BITS || (t->width == 8 && is_inside(l, t->bits, 8));
    return has_word && has_when && has_bits;
}

static bool check_all(const struct reading *r)
{
    bool is_good = true;
    for (size_t i = 0; i < r->lists; i++) {
        is_good = is_good && check_list(&r->list[i]);
    }
    for (size_t i = 0; i < r->terms; i++) {
        is_good = is_good && check_term(r, &r->term[i]);
    }
    return is_good;
}

/* The page's head. What follows it may be longer than in this build. */
struct head {
    char magic[8];
    uint32_t version, size;
    char library[16];
    uint32_t nlists, lists, nterms, terms;
};
_Static_assert(sizeof(struct head) == offsetof(struct fl_live_page, list), "one layout");

static int read_head(const struct fl_live_memory *m, uint64_t page, struct head *head,
                     struct fl_live *out)
{
    static const char nothing[sizeof(head->magic)];
    int rc = m->read(m, page, head, sizeof(*head));
    if (rc != 0) {
        return rc;
    }
    if (memcmp(head->magic, FL_LIVE_MAGIC, sizeof(head->magic)) != 0) {
        return memcmp(head->magic, nothing, sizeof(nothing)) == 0 ? -EAGAIN : -EPROTO;
    }
    out->version = head->version;
    memcpy(out->library, head->library, sizeof(out->library) - 1);
    if (head->version != FL_LIVE_VERSION) {
        return -EPROTONOSUPPORT;
    }
    uint64_t lists_end = head->lists + (uint64_t)head->nlists * sizeof(struct fl_live_list);
    uint64_t terms_end = head->terms + (uint64_t)head->nterms * sizeof(struct fl_live_term);
    bool is_good = head->size <= FL_PAGE_MOST && head->nlists <= FL_LISTS_MOST &&
                   head->nterms <= FL_TERMS_MOST && head->lists >= sizeof(*head) &&
                   head->terms >= sizeof(*head) && lists_end <= head->size &&
                   terms_end <= head->size;
    return is_good ? 0 : -EPROTO;
}

/* The figures that list `i` has a part of: they are known, or not known for all that is missing. */
static void note_list(struct reading *r, size_t i, bool *lost, bool is_lost)
{
    for (size_t k = 0; k < r->terms; k++) {
        const struct fl_live_term *t = &r->term[k];
        size_t n = t->how == FL_LIVE_TALLY ? FL_LIVE_STATES : 1;
        for (size_t f = t->figure; t->list == i && f < t->figure + n && f < FL_LIVE_FIGURES; f++) {
            r->out->known[f] = true;
            lost[f] = lost[f] || is_lost;
        }
    }
}

int fl_live_read(const struct fl_live_memory *m, uint64_t page, struct fl_live *out)
{
    static int (*const add[])(struct reading * r, size_t i) = {
        [FL_LIVE_ROW] = add_row, [FL_LIVE_CHAIN] = add_chain, [FL_LIVE_TABLE] = add_table};
    struct fl_live_list list[FL_LISTS_MOST];
    struct fl_live_term term[FL_TERMS_MOST];
    bool lost[FL_LIVE_FIGURES] = {false};
    struct head head;
    *out = (struct fl_live){.version = 0};
    int rc = read_head(m, page, &head, out);
    rc = rc == 0 ? m->read(m, page + head.lists, list, head.nlists * sizeof(list[0])) : rc;
    rc = rc == 0 ? m->read(m, page + head.terms, term, head.nterms * sizeof(term[0])) : rc;
    if (rc != 0) {
        return rc;
    }
    struct reading r = {m, list, term, head.nlists, head.nterms, out, 0, 0, {0}};
    if (!check_all(&r)) {
        return -EPROTO;
    }
    for (size_t i = 0; i < r.lists; i++) {
        note_list(&r, i, lost, add[list[i].shape](&r, i) != 0);
    }
    for (size_t f = 0; f < FL_LIVE_FIGURES; f++) {
        out->known[f] = out->known[f] && !lost[f];
    }
    return 0;
}
