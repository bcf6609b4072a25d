/* Plans kept across runs: their form in a file. Pure: from slots to bytes and back.
 *
 * docs/plan-file.md has the table of offsets. Numbers are little-endian, wherever it is written. What is read is believed in
 * nothing: a file that fl_file_check passed leads to no access outside it, and its slots are such as fl_merge and the packer
 * make; whether any of them overlap is for fl_pack_is_valid to say, and what they are worth is decided by the claim on each
 * granule. */
#include "plan/store/store.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

static const char magic[8] = {'F', 'L', 'P', 'L', 'A', 'N', 'S', '\n'};

enum { VERSION = 2, HEAD = FL_FILE_HEAD, PLAN = 56, SLOT = 64 };
enum { AT_VERSION = 8, AT_PLANS = 12, AT_LENGTH = 16, AT_CHECKSUM = FL_FILE_CHECKSUM_AT };
enum { P_LENGTH = 0, P_KEY = 8, P_SIGNATURE = 16, P_HORIZON = 24, P_HEIGHT = 32, P_GRANULE = 40 };
enum { P_SLOTS = 48, P_ZERO = 52 };
enum { S_SIZE = 0, S_LEAST = 8, S_MOST = 16, S_OFFSET = 24, S_SECOND = 32, S_BIRTH = 40 };
enum { S_DEATH = 44, S_THREAD = 48, S_INDEX = 52, S_KIND = 56, S_ALIGN = 57, S_ZONE = 58 };
enum { S_ZERO = 59 };

static const uint64_t most_bytes = (uint64_t)1 << 47;

static uint64_t get64(const unsigned char *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

static uint32_t get32(const unsigned char *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

static void put64(unsigned char *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, sizeof v);
}

static void put32(unsigned char *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, sizeof v);
}

/* Each step is a bijection of the state, and of the word: two texts that differ in one word never have the same hash. */
uint64_t fl_file_hash(uint64_t seed, const void *data, size_t len)
{
    const unsigned char *p = data;
    uint64_t h = seed ^ len;

    for (; len > 0; p += fl_min(len, 8), len -= fl_min(len, 8)) {
        unsigned char word[8] = {0};
        memcpy(word, p, fl_min(len, 8));
        h = (h ^ get64(word)) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return h;
}

uint64_t fl_file_checksum(const void *file, size_t len)
{
    const unsigned char *p = file;

    return fl_file_hash(fl_file_hash(1, p, AT_CHECKSUM), p + HEAD, len - HEAD);
}

/* ---- writing ---- */

size_t fl_file_cost(size_t n)
{
    return PLAN + n * SLOT;
}

bool fl_file_begin(struct fl_file *f, void *buf, size_t size)
{
    *f = (struct fl_file){.buf = buf, .size = size, .len = HEAD};
    return size >= HEAD;
}

static bool is_planned(const struct fl_slot *s)
{
    return s->kind <= FL_SLOT_DOUBLED;
}

static bool is_place(const struct fl_file_plan *p, const struct fl_slot *s, uint64_t offset)
{
    uint64_t align = fl_max(s->align, p->granule);

    return offset < most_bytes && offset % align == 0 && s->size <= p->height &&
           offset <= p->height - s->size;
}

static bool is_slot(const struct fl_file_plan *p, const struct fl_slot *s,
                    const struct fl_slot *before)
{
    bool whole = s->birth == 0 && s->death == p->horizon;

    if (s->size >= most_bytes || s->least > s->most || s->most > s->size ||
        s->align >= most_bytes || (s->align & (s->align - 1)) != 0 || s->kind > FL_SLOT_VARIES ||
        s->birth >= s->death || s->death > p->horizon) {
        return false;
    }
    if (s->zone > FL_PLAN_ZONES || (s->zone != 0 && is_planned(s) && s->kind != FL_SLOT_DOUBLED)) {
        return false;
    }
    if (before != NULL && (before->thread > s->thread ||
                           (before->thread == s->thread && before->index >= s->index))) {
        return false;
    }
    if (is_planned(s) ? !is_place(p, s, s->offset[0]) : s->offset[0] != FL_PACK_NONE) {
        return false;
    }
    if (s->kind == FL_SLOT_DOUBLED) {
        return whole && is_place(p, s, s->offset[1]);
    }
    return s->offset[1] == FL_PACK_NONE && (s->kind != FL_SLOT_CROSSING || whole);
}

/* All but the slots. */
static bool is_plan(const struct fl_file_plan *p)
{
    return p->horizon <= UINT32_MAX && p->granule >= 4096 && fl_is_pow2(p->granule) &&
           p->height <= most_bytes && p->height % p->granule == 0 && p->n <= FL_FILE_SLOTS;
}

static void put_slot(unsigned char *at, const struct fl_slot *s)
{
    memset(at, 0, SLOT);
    put64(at + S_SIZE, s->size);
    put64(at + S_LEAST, s->least);
    put64(at + S_MOST, s->most);
    put64(at + S_OFFSET, s->offset[0]);
    put64(at + S_SECOND, s->offset[1]);
    put32(at + S_BIRTH, (uint32_t)s->birth);
    put32(at + S_DEATH, (uint32_t)s->death);
    put32(at + S_THREAD, s->thread);
    put32(at + S_INDEX, s->index);
    at[S_KIND] = (unsigned char)s->kind;
    at[S_ALIGN] = s->align == 0 ? 0 : (unsigned char)__builtin_ctzll(s->align);
    at[S_ZONE] = (unsigned char)s->zone;
}

int fl_file_add(struct fl_file *f, const struct fl_file_plan *p)
{
    if (!is_plan(p)) {
        return -EINVAL;
    }
    for (size_t i = 0; i < p->n; i++) {
        if (!is_slot(p, &p->slot[i], i > 0 ? &p->slot[i - 1] : NULL)) {
            return -EINVAL;
        }
    }
    if (f->n == FL_FILE_PLANS || fl_file_cost(p->n) > f->size - f->len) {
        return -ENOSPC;
    }
    unsigned char *at = f->buf + f->len;
    memset(at, 0, PLAN);
    put64(at + P_LENGTH, fl_file_cost(p->n));
    put64(at + P_KEY, p->key);
    put64(at + P_SIGNATURE, p->signature);
    put64(at + P_HORIZON, p->horizon);
    put64(at + P_HEIGHT, p->height);
    put64(at + P_GRANULE, p->granule);
    put32(at + P_SLOTS, (uint32_t)p->n);
    for (size_t i = 0; i < p->n; i++) {
        put_slot(at + PLAN + i * SLOT, &p->slot[i]);
    }
    f->len += fl_file_cost(p->n);
    f->n++;
    return 0;
}

size_t fl_file_end(struct fl_file *f)
{
    memcpy(f->buf, magic, sizeof magic);
    put32(f->buf + AT_VERSION, VERSION);
    put32(f->buf + AT_PLANS, f->n);
    put64(f->buf + AT_LENGTH, f->len);
    put64(f->buf + AT_CHECKSUM, fl_file_checksum(f->buf, f->len));
    return f->len;
}

unsigned fl_file_keep(struct fl_file *f, const void *old, uint64_t but)
{
    const unsigned char *file = old, *at = file + HEAD;
    unsigned left_out = 0;

    for (uint32_t i = 0; i < get32(file + AT_PLANS); i++) {
        size_t len = get64(at + P_LENGTH);
        if (get64(at + P_KEY) == but) {
            /* the caller has newer ones */
        } else if (f->n == FL_FILE_PLANS || len > f->size - f->len) {
            left_out++;
        } else {
            memcpy(f->buf + f->len, at, len);
            f->len += len;
            f->n++;
        }
        at += len;
    }
    return left_out;
}

/* ---- reading ---- */

static void get_plan(const unsigned char *at, struct fl_file_plan *p)
{
    *p = (struct fl_file_plan){.key = get64(at + P_KEY),
                               .signature = get64(at + P_SIGNATURE),
                               .horizon = get64(at + P_HORIZON),
                               .height = get64(at + P_HEIGHT),
                               .granule = get64(at + P_GRANULE),
                               .n = get32(at + P_SLOTS)};
}

/* False: not even its fields are what they may be. */
static bool get_slot(const unsigned char *at, struct fl_slot *s)
{
    static const unsigned char zero[SLOT - S_ZERO];

    *s = (struct fl_slot){.size = get64(at + S_SIZE),
                          .least = get64(at + S_LEAST),
                          .most = get64(at + S_MOST),
                          .align = at[S_ALIGN] < 47 ? UINT64_C(1) << at[S_ALIGN] : 0,
                          .birth = get32(at + S_BIRTH),
                          .death = get32(at + S_DEATH),
                          .offset = {get64(at + S_OFFSET), get64(at + S_SECOND)},
                          .thread = get32(at + S_THREAD),
                          .index = get32(at + S_INDEX),
                          .kind = FL_SLOT_VARIES,
                          .zone = at[S_ZONE]};
    if (at[S_ALIGN] >= 47 || at[S_KIND] > FL_SLOT_VARIES ||
        memcmp(at + S_ZERO, zero, sizeof zero) != 0) {
        return false;
    }
    s->kind = (enum fl_slot_kind)at[S_KIND];
    return true;
}

/* A plan at `at`, of which `left` bytes are in the file. Its length; 0: it is none. */
static size_t check_plan(const unsigned char *at, size_t left)
{
    struct fl_file_plan p;
    struct fl_slot s[2];

    if (left < PLAN) {
        return 0;
    }
    get_plan(at, &p);
    uint64_t len = get64(at + P_LENGTH);
    if (!is_plan(&p) || len > left || len != fl_file_cost(p.n) || get32(at + P_ZERO) != 0) {
        return 0;
    }
    for (size_t i = 0; i < p.n; i++) {
        if (!get_slot(at + PLAN + i * SLOT, &s[i % 2]) ||
            !is_slot(&p, &s[i % 2], i > 0 ? &s[(i + 1) % 2] : NULL)) {
            return 0;
        }
    }
    return len;
}

int fl_file_length(const void *head, size_t len, size_t *out)
{
    const unsigned char *file = head;

    *out = 0;
    if (len < HEAD || memcmp(file, magic, sizeof magic) != 0) {
        return -EINVAL;
    }
    if (get32(file + AT_VERSION) != VERSION) {
        return -ENOTSUP;
    }
    uint64_t length = get64(file + AT_LENGTH);
    if (length < HEAD || length > FL_FILE_BYTES || length % 8 != 0) {
        return -EMSGSIZE;
    }
    *out = length;
    return 0;
}

int fl_file_check(const void *buf, size_t len)
{
    const unsigned char *file = buf;
    size_t length, at = HEAD;
    int rc = fl_file_length(buf, len, &length);

    if (rc != 0) {
        return rc;
    }
    if (length > len) {
        return -EMSGSIZE;
    }
    if (get64(file + AT_CHECKSUM) != fl_file_checksum(file, length)) {
        return -EBADMSG;
    }
    if (get32(file + AT_PLANS) > FL_FILE_PLANS) {
        return -EILSEQ;
    }
    for (uint32_t i = 0; i < get32(file + AT_PLANS); i++) {
        size_t plan = check_plan(file + at, length - at);
        if (plan == 0) {
            return -EILSEQ;
        }
        at += plan;
    }
    return at == length ? 0 : -EILSEQ;
}

const char *fl_file_why(int rc)
{
    switch (rc) {
    case 0:
        return "nothing is wrong";
    case -ENOENT:
        return "it is not there";
    case -EINVAL:
        return "it is no plan file";
    case -ENOTSUP:
        return "it is of another version";
    case -EMSGSIZE:
        return "it is cut short, or too long";
    case -EBADMSG:
        return "its checksum is wrong";
    case -EILSEQ:
        return "its content makes no sense";
    case -ELOOP:
        return "it is a link";
    case -EACCES:
        return "it is another user's, or others may write to it";
    case -ENOKEY:
        return "it has no plan of this program";
    default:
        return "it cannot be read";
    }
}

int fl_file_next(const void *buf, size_t *at, struct fl_file_plan *out)
{
    const unsigned char *file = buf;
    size_t next = *at == 0 ? HEAD : *at + get64(file + *at + P_LENGTH);

    if (next >= get64(file + AT_LENGTH)) {
        return -ENOKEY;
    }
    get_plan(file + next, out);
    *at = next;
    return 0;
}

int fl_file_find(const void *buf, uint64_t key, size_t *at, struct fl_file_plan *out)
{
    struct fl_file_plan p;

    for (size_t next = *at; fl_file_next(buf, &next, &p) == 0;) {
        if (p.key == key) {
            *at = next;
            *out = p;
            return 0;
        }
    }
    return -ENOKEY;
}

void fl_file_slots(const void *buf, size_t at, struct fl_slot *slot)
{
    const unsigned char *plan = (const unsigned char *)buf + at;

    for (size_t i = 0; i < get32(plan + P_SLOTS); i++) {
        (void)get_slot(plan + PLAN + i * SLOT, &slot[i]);
    }
}
