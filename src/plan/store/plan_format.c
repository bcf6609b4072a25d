/* Plans kept across runs: their form in a file. Pure: from slots to bytes and back.
 *
 * docs/plan-file.md has the table of offsets. Nothing that is read is trusted: a file that
 * fl_file_check passed leads to no access outside it, and each of its slots is such as fl_merge and
 * the packer make. Whether any of them overlap is looked at when a layout is made of them
 * (plan_layout.c). */
#include "plan/store/store.h"

#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "the structs below are the file's bytes");

enum { VERSION = 3 };

static const char magic[8] = {'F', 'L', 'P', 'L', 'A', 'N', 'S', '\n'};
static const uint64_t most_bytes = (uint64_t)1 << 47;

struct file_head {
    char magic[sizeof magic];
    uint32_t version, plans;
    uint64_t length, checksum;
};

/* A plan is the numbers of struct fl_file_plan, and then its slots. */
enum {
    HEAD = FL_FILE_HEAD,
    PLAN = offsetof(struct fl_file_plan, slot),
    SLOT = sizeof(struct fl_slot)
};
_Static_assert(sizeof(struct file_head) == HEAD && PLAN == 48 && SLOT == 80, "docs/plan-file.md");
#define FL_SLOT_AT(member, at) offsetof(struct fl_slot, member) == (at)
_Static_assert(FL_SLOT_AT(size, 0) && FL_SLOT_AT(headroom, 8) && FL_SLOT_AT(least, 16) &&
                   FL_SLOT_AT(most, 24) && FL_SLOT_AT(align, 32) && FL_SLOT_AT(birth, 40) &&
                   FL_SLOT_AT(death, 48) && FL_SLOT_AT(offset, 56) && FL_SLOT_AT(kind, 72) &&
                   FL_SLOT_AT(zone, 76) && FL_SLOT_KEPT == 3,
               "another VERSION");
_Static_assert(offsetof(struct file_head, checksum) == FL_FILE_CHECKSUM_AT, "docs/plan-file.md");

static struct fl_file_plan plan_at(const void *at)
{
    struct fl_file_plan p;

    memcpy(&p, at, PLAN);
    p.slot = (const struct fl_slot *)((const char *)at + PLAN);
    return p;
}

/* Each step is a bijection of the state, and of the word: two texts that differ in one word never
 * have the same hash. */
uint64_t fl_file_hash(uint64_t seed, const void *data, size_t len)
{
    const unsigned char *p = data;
    uint64_t h = seed ^ len;

    for (size_t part; len > 0; p += part, len -= part) {
        uint64_t word = 0;
        part = fl_min(len, sizeof word);
        memcpy(&word, p, part);
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return h;
}

uint64_t fl_file_checksum(const void *file, size_t len)
{
    const unsigned char *p = file;

    return fl_file_hash(fl_file_hash(1, p, FL_FILE_CHECKSUM_AT), p + HEAD, len - HEAD);
}

size_t fl_file_cost(size_t n)
{
    return PLAN + n * SLOT;
}

/* ---- what may be in a file ---- */

static bool is_place(const struct fl_file_plan *p, const struct fl_slot *s, uint64_t offset)
{
    uint64_t align = fl_max(s->align, p->granule);

    return offset < most_bytes && offset % align == 0 && s->size <= p->height &&
           offset <= p->height - s->size;
}

static bool is_slot(const struct fl_file_plan *p, const struct fl_slot *s)
{
    bool whole = s->birth == 0 && s->death == p->horizon;

    if (s->size >= most_bytes || s->headroom > s->size || s->least > s->most || s->most > s->size ||
        s->align >= most_bytes || (s->align & (s->align - 1)) != 0 || s->kind > FL_SLOT_KEPT ||
        s->birth >= s->death || s->death > p->horizon) {
        return false;
    }
    if (s->zone > FL_PLAN_ZONES ||
        (s->zone != 0 && fl_slot_is_planned(s) && s->kind != FL_SLOT_DOUBLE_BUFFERED)) {
        return false;
    }
    if (fl_slot_is_planned(s) ? !is_place(p, s, s->offset[0]) : s->offset[0] != FL_PACK_NONE) {
        return false;
    }
    if (s->kind == FL_SLOT_DOUBLE_BUFFERED) {
        return whole && is_place(p, s, s->offset[1]);
    }
    return s->offset[1] == FL_PACK_NONE && (s->kind != FL_SLOT_SPANS_STEPS || whole);
}

/* `left`: bytes that it may have. No slot beyond them is looked at. */
static bool is_plan(const struct fl_file_plan *p, size_t left)
{
    bool is_good = p->horizon <= UINT32_MAX && p->granule >= 4096 && fl_is_pow2(p->granule) &&
                   p->height <= most_bytes && p->height % p->granule == 0 &&
                   p->n <= FL_FILE_SLOTS && fl_file_cost(p->n) <= left;

    for (size_t i = 0; is_good && i < p->n; i++) {
        is_good = is_slot(p, &p->slot[i]);
    }
    return is_good;
}

/* ---- writing ---- */

bool fl_file_begin(struct fl_file *f, void *buf, size_t size)
{
    *f = (struct fl_file){.buf = buf, .size = fl_min(size, FL_FILE_BYTES), .len = HEAD};
    return size >= HEAD;
}

int fl_file_add(struct fl_file *f, const struct fl_file_plan *p)
{
    if (!is_plan(p, SIZE_MAX)) {
        return -EINVAL;
    }
    if (f->n == FL_FILE_PLANS || fl_file_cost(p->n) > f->size - f->len) {
        return -ENOSPC;
    }
    memcpy(f->buf + f->len, p, PLAN);
    if (p->n != 0) { /* else `slot` may be NULL */
        memcpy(f->buf + f->len + PLAN, p->slot, p->n * SLOT);
    }
    f->len += fl_file_cost(p->n);
    f->n++;
    return 0;
}

size_t fl_file_end(struct fl_file *f)
{
    struct file_head *h = (struct file_head *)f->buf;

    *h = (struct file_head){.version = VERSION, .plans = f->n, .length = f->len};
    memcpy(h->magic, magic, sizeof magic);
    h->checksum = fl_file_checksum(f->buf, f->len);
    return f->len;
}

unsigned fl_file_keep(struct fl_file *f, const void *old, uint64_t but)
{
    struct fl_file_plan p;
    unsigned left_out = 0;

    for (size_t at = 0; fl_file_next(old, &at, &p) == 0;) {
        left_out += p.key != but && fl_file_add(f, &p) != 0;
    }
    return left_out;
}

/* ---- reading ---- */

int fl_file_length(const void *head, size_t len, size_t *out)
{
    *out = 0;
    if (len < HEAD || memcmp(head, magic, sizeof magic) != 0) {
        return -EINVAL;
    }
    const struct file_head *h = head;
    if (h->version != VERSION) {
        return -ENOTSUP;
    }
    if (h->length < HEAD || h->length > FL_FILE_BYTES || h->length % 8 != 0) {
        return -EMSGSIZE;
    }
    *out = h->length;
    return 0;
}

int fl_file_check(const void *buf, size_t len)
{
    const struct file_head *h = buf;
    size_t length, at = HEAD;
    int rc = fl_file_length(buf, len, &length);

    if (rc != 0 || length > len) {
        return rc != 0 ? rc : -EMSGSIZE;
    }
    if (h->checksum != fl_file_checksum(buf, length)) {
        return -EBADMSG;
    }
    for (uint32_t i = 0; i < h->plans; i++) {
        if (i == FL_FILE_PLANS || length - at < PLAN) {
            return -EILSEQ;
        }
        struct fl_file_plan p = plan_at((const char *)buf + at);
        if (!is_plan(&p, length - at)) {
            return -EILSEQ;
        }
        at += fl_file_cost(p.n);
    }
    return at == length ? 0 : -EILSEQ;
}

const char *fl_file_why(int rc)
{
    static const struct {
        int rc;
        const char *why;
    } answer[] = {
        {0, "nothing is wrong"},
        {-ENOENT, "it is not there"},
        {-EINVAL, "it is no plan file"},
        {-ENOTSUP, "it is of another version"},
        {-EMSGSIZE, "it is cut short, or too long"},
        {-EBADMSG, "its checksum is wrong"},
        {-EILSEQ, "its content makes no sense"},
        {-ELOOP, "it is a link"},
        {-EACCES, "it is another user's, or others may write to it"},
        {-ENOKEY, "it has no plan of this program"},
    };

    for (size_t i = 0; i < sizeof answer / sizeof answer[0]; i++) {
        if (answer[i].rc == rc) {
            return answer[i].why;
        }
    }
    return "it cannot be read";
}

int fl_file_next(const void *buf, size_t *at, struct fl_file_plan *out)
{
    const struct file_head *h = buf;
    const char *file = buf;
    size_t next = *at == 0 ? HEAD : *at + fl_file_cost(plan_at(file + *at).n);

    if (next >= h->length) {
        return -ENOKEY;
    }
    *out = plan_at(file + next);
    *at = next;
    return 0;
}

int fl_file_find(const void *buf, uint64_t key, size_t *at, struct fl_file_plan *out)
{
    int rc;

    do {
        rc = fl_file_next(buf, at, out);
    } while (rc == 0 && out->key != key);
    return rc;
}
