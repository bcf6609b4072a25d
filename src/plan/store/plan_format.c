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

enum { VERSION = 2, ALIGN_BITS = 47 };

static const char magic[8] = {'F', 'L', 'P', 'L', 'A', 'N', 'S', '\n'};
static const uint64_t most_bytes = (uint64_t)1 << ALIGN_BITS;

struct file_head {
    char magic[sizeof magic];
    uint32_t version, plans;
    uint64_t length, checksum;
};

struct file_plan {
    uint64_t length, key, signature, horizon, height, granule;
    uint32_t n, zero;
};

struct file_slot {
    uint64_t size, least, most, offset[2];
    uint32_t birth, death, nothing, number;
    uint8_t kind, align, zone, zero[5]; /* align: its binary logarithm */
};

enum { HEAD = FL_FILE_HEAD, PLAN = sizeof(struct file_plan), SLOT = sizeof(struct file_slot) };
_Static_assert(sizeof(struct file_head) == HEAD && PLAN == 56 && SLOT == 64, "docs/plan-file.md");
_Static_assert(offsetof(struct file_head, checksum) == FL_FILE_CHECKSUM_AT, "docs/plan-file.md");

/* Members that are the same number in the file and in the planner's struct. */
#define PLAN_MEMBERS(X) X(key) X(signature) X(horizon) X(height) X(granule) X(n)
#define SLOT_PLACE(X) X(size) X(least) X(most) X(offset[0]) X(offset[1]) X(birth) X(death)
#define SLOT_MEMBERS(X) SLOT_PLACE(X) X(kind) X(zone)
#define COPY(member) to.member = (__typeof__(to.member))from->member;

static struct file_plan pack_plan(const struct fl_file_plan *from)
{
    struct file_plan to = {.length = fl_file_cost(from->n)};

    PLAN_MEMBERS(COPY)
    return to;
}

static struct fl_file_plan unpack_plan(const void *at)
{
    const struct file_plan *from = at;
    struct fl_file_plan to = {.slot = NULL};

    PLAN_MEMBERS(COPY)
    return to;
}

static struct file_slot pack_slot(const struct fl_slot *from, size_t number)
{
    struct file_slot to = {.number = (uint32_t)number,
                           .align = from->align != 0 ? (uint8_t)__builtin_ctzll(from->align) : 0};

    SLOT_MEMBERS(COPY)
    return to;
}

static struct fl_slot unpack_slot(const void *at)
{
    const struct file_slot *from = at;
    struct fl_slot to = {.align = from->align < ALIGN_BITS ? UINT64_C(1) << from->align : 0};

    SLOT_MEMBERS(COPY)
    return to;
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

/* ---- writing ---- */

size_t fl_file_cost(size_t n)
{
    return PLAN + n * SLOT;
}

bool fl_file_begin(struct fl_file *f, void *buf, size_t size)
{
    *f = (struct fl_file){.buf = buf, .size = fl_min(size, FL_FILE_BYTES), .len = HEAD};
    return size >= HEAD;
}

static bool is_planned(const struct fl_slot *s)
{
    return s->kind <= FL_SLOT_DOUBLE_BUFFERED;
}

static bool is_place(const struct fl_file_plan *p, const struct fl_slot *s, uint64_t offset)
{
    uint64_t align = fl_max(s->align, p->granule);

    return offset < most_bytes && offset % align == 0 && s->size <= p->height &&
           offset <= p->height - s->size;
}

static bool is_slot(const struct fl_file_plan *p, const struct fl_slot *s)
{
    bool whole = s->birth == 0 && s->death == p->horizon;

    if (s->size >= most_bytes || s->least > s->most || s->most > s->size ||
        s->align >= most_bytes || (s->align & (s->align - 1)) != 0 || s->kind > FL_SLOT_KEPT ||
        s->birth >= s->death || s->death > p->horizon) {
        return false;
    }
    if (s->zone > FL_PLAN_ZONES ||
        (s->zone != 0 && is_planned(s) && s->kind != FL_SLOT_DOUBLE_BUFFERED)) {
        return false;
    }
    if (is_planned(s) ? !is_place(p, s, s->offset[0]) : s->offset[0] != FL_PACK_NONE) {
        return false;
    }
    if (s->kind == FL_SLOT_DOUBLE_BUFFERED) {
        return whole && is_place(p, s, s->offset[1]);
    }
    return s->offset[1] == FL_PACK_NONE && (s->kind != FL_SLOT_SPANS_STEPS || whole);
}

/* All but the slots. */
static bool is_plan(const struct fl_file_plan *p)
{
    return p->horizon <= UINT32_MAX && p->granule >= 4096 && fl_is_pow2(p->granule) &&
           p->height <= most_bytes && p->height % p->granule == 0 && p->n <= FL_FILE_SLOTS;
}

int fl_file_add(struct fl_file *f, const struct fl_file_plan *p)
{
    if (!is_plan(p)) {
        return -EINVAL;
    }
    for (size_t i = 0; i < p->n; i++) {
        if (!is_slot(p, &p->slot[i])) {
            return -EINVAL;
        }
    }
    if (f->n == FL_FILE_PLANS || fl_file_cost(p->n) > f->size - f->len) {
        return -ENOSPC;
    }
    unsigned char *at = f->buf + f->len;
    struct file_plan plan = pack_plan(p);
    memcpy(at, &plan, PLAN);
    for (size_t i = 0; i < p->n; i++) {
        struct file_slot slot = pack_slot(&p->slot[i], i);
        memcpy(at + PLAN + i * SLOT, &slot, SLOT);
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
        size_t len = fl_file_cost(p.n);
        if (p.key == but) {
            /* the caller has newer ones */
        } else if (f->n == FL_FILE_PLANS || len > f->size - f->len) {
            left_out++;
        } else {
            memcpy(f->buf + f->len, (const unsigned char *)old + at, len);
            f->len += len;
            f->n++;
        }
    }
    return left_out;
}

/* ---- reading ---- */

/* A plan at `at`, of which `left` bytes are in the file: to the byte one that fl_file_add writes?
 * Its length; 0: no. */
static size_t check_plan(const char *at, size_t left)
{
    if (left < PLAN) {
        return 0;
    }
    struct fl_file_plan p = unpack_plan(at);
    struct file_plan plan = pack_plan(&p);
    if (!is_plan(&p) || memcmp(at, &plan, PLAN) != 0 || plan.length > left) {
        return 0;
    }
    at += PLAN;
    for (size_t i = 0; i < p.n; i++, at += SLOT) {
        struct fl_slot s = unpack_slot(at);
        struct file_slot slot = pack_slot(&s, i);
        if (memcmp(at, &slot, SLOT) != 0 || !is_slot(&p, &s)) {
            return 0;
        }
    }
    return plan.length;
}

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
        size_t plan = i < FL_FILE_PLANS ? check_plan((const char *)buf + at, length - at) : 0;
        if (plan == 0) {
            return -EILSEQ;
        }
        at += plan;
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
    size_t next = *at == 0 ? HEAD : *at + fl_file_cost(unpack_plan(file + *at).n);

    if (next >= h->length) {
        return -ENOKEY;
    }
    *out = unpack_plan(file + next);
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

void fl_file_slots(const void *buf, size_t at, struct fl_slot *slot)
{
    const char *plan = (const char *)buf + at;

    for (size_t i = 0, n = unpack_plan(plan).n; i < n; i++) {
        slot[i] = unpack_slot(plan + PLAN + i * SLOT);
    }
}
