/* The reader of live pages, on memory that is made up: what it adds up, and that no page, forged,
 * short, or of another version, makes it read for ever or outside its own memory. */
#include "cases.h"
#include "faultstat/top/live.h"

#include <elf.h>

/* All there is: addresses from BASE on. The file is at its start, the page and elements behind. */
enum { BASE = 0x10000, LEN = 0x8000, PAGE = BASE + 0x1000, DATA = BASE + 0x4000 };

static _Alignas(8) unsigned char bytes[LEN];
static size_t reads;

static int read_fake(const struct fl_live_memory *m, uint64_t at, void *out, size_t len)
{
    (void)m;
    reads++;
    if (at < BASE || at > BASE + LEN || len > BASE + LEN - at) {
        return -EFAULT;
    }
    memcpy(out, bytes + (at - BASE), len);
    return 0;
}

static const struct fl_live_memory memory = {.read = read_fake};
static struct fl_live_page *const page = (void *)(bytes + (PAGE - BASE));

static void put64(uint64_t at, uint64_t value)
{
    memcpy(bytes + (at - BASE), &value, sizeof(value));
}

static void clean(void)
{
    memset(bytes, 0, sizeof(bytes));
    reads = 0;
    *page = (struct fl_live_page){.magic = FL_LIVE_MAGIC,
                                  .version = FL_LIVE_VERSION,
                                  .size = sizeof(*page),
                                  .library = "1.2.3",
                                  .lists = offsetof(struct fl_live_page, list),
                                  .terms = offsetof(struct fl_live_page, term)};
}

static void add_list(struct fl_live_list list)
{
    page->list[page->nlists++] = list;
}

/* A term of the last list. */
static void add_term(struct fl_live_term term)
{
    term.list = (uint8_t)(page->nlists - 1);
    term.when = term.when_width == 0 ? FL_LIVE_ALWAYS : term.when;
    page->term[page->nterms++] = term;
}

static int read_page(struct fl_live *live)
{
    return fl_live_read(&memory, PAGE, live);
}

static void assert_figure(const struct fl_live *live, enum fl_live_figure figure, uint64_t value)
{
    assert_true(live->known[figure]);
    assert_int_equal(live->value[figure], value);
}

/* ---- sums ---- */

CASE(words_of_a_row_are_added_and_subtracted)
{
    struct fl_live live;
    for (unsigned i = 0; i < 4; i++) {
        put64(DATA + 32 * i + 8, 100 + i);
        put64(DATA + 32 * i + 16, i % 2);
    }
    add_list((struct fl_live_list){.at = DATA, .count = 4, .size = 24, .next = 32});
    add_term((struct fl_live_term){.figure = FL_LIVE_REQUESTS, .width = 8, .offset = 8});
    add_term((struct fl_live_term){
        .figure = FL_LIVE_STALLS, .width = 8, .offset = 8, .when = 16, .when_width = 1});
    add_term((struct fl_live_term){
        .figure = FL_LIVE_LIVE_BYTES, .how = FL_LIVE_ONE, .shift = 4, .subtracts = 1});
    add_term((struct fl_live_term){.figure = FL_LIVE_LIVE_BYTES, .width = 4, .offset = 8});
    assert_int_equal(read_page(&live), 0);
    assert_figure(&live, FL_LIVE_REQUESTS, 406);
    assert_figure(&live, FL_LIVE_STALLS, 204);
    assert_figure(&live, FL_LIVE_LIVE_BYTES, 406 - 4 * 16);
    assert_false(live.known[FL_LIVE_LAZY]);
    assert_string_equal(live.library, "1.2.3");
}

CASE(chains_end_where_they_say)
{
    struct fl_live live;
    put64(DATA, DATA + 64);
    put64(DATA + 64, DATA + 128); /* `next` */
    put64(DATA + 64 + 8, 1);
    put64(DATA + 128 + 8, 2);
    add_list((struct fl_live_list){.at = DATA, .size = 16, .shape = FL_LIVE_CHAIN});
    add_term((struct fl_live_term){.figure = FL_LIVE_REQUESTS, .width = 8, .offset = 8});
    add_list((struct fl_live_list){
        .at = DATA, .size = 16, .shape = FL_LIVE_CHAIN, .next = FL_LIVE_LAST});
    add_term((struct fl_live_term){.figure = FL_LIVE_STALLS, .width = 8, .offset = 8});
    assert_int_equal(read_page(&live), 0);
    assert_figure(&live, FL_LIVE_REQUESTS, 3);
    assert_figure(&live, FL_LIVE_STALLS, 1);
}

CASE(tables_count_their_elements_by_state)
{
    static const unsigned states[] = {3, 3, 0, 2, 77};
    struct fl_live live;
    put64(DATA, 5); /* their number */
    for (unsigned i = 0; i < 5; i++) {
        put64(DATA + 8 + 8 * i, DATA + 256 + 64 * i);
        put64(DATA + 256 + 64 * i + 32, states[i]);
    }
    add_list((struct fl_live_list){
        .at = DATA + 8, .count = DATA, .from = 24, .size = 16, .shape = FL_LIVE_TABLE});
    add_term((struct fl_live_term){
        .figure = FL_LIVE_STATE, .how = FL_LIVE_TALLY, .width = 4, .offset = 32});
    assert_int_equal(read_page(&live), 0);
    assert_figure(&live, FL_LIVE_STATE + 3, 2);
    assert_figure(&live, FL_LIVE_STATE + 0, 1);
    assert_figure(&live, FL_LIVE_STATE + 2, 1);
    assert_figure(&live, FL_LIVE_STATE + 1, 0);
}

CASE(bits_count_up_to_their_number)
{
    struct fl_live live;
    put64(DATA, DATA + 64);
    put64(DATA + 8, 70);
    put64(DATA + 64, UINT64_MAX);
    put64(DATA + 72, UINT64_MAX);
    add_list((struct fl_live_list){.at = DATA, .count = 1, .size = 16});
    add_term((struct fl_live_term){
        .figure = FL_LIVE_RESERVE_BYTES, .how = FL_LIVE_BITS, .width = 8, .bits = 8, .shift = 16});
    assert_int_equal(read_page(&live), 0);
    assert_figure(&live, FL_LIVE_RESERVE_BYTES, 70u << 16);
}

/* ---- other versions ---- */

CASE(a_page_that_is_not_filled_yet_is_told)
{
    struct fl_live live;
    memset(page->magic, 0, sizeof(page->magic));
    assert_int_equal(read_page(&live), -EAGAIN);
    memcpy(page->magic, "NOTLIVE", 8);
    assert_int_equal(read_page(&live), -EPROTO);
}

CASE(another_version_is_refused_by_its_number)
{
    static const uint32_t version[] = {0, FL_LIVE_VERSION + 1, UINT32_MAX};
    struct fl_live live;
    for (size_t i = 0; i < 3; i++) {
        page->version = version[i];
        assert_int_equal(read_page(&live), -EPROTONOSUPPORT);
        assert_int_equal(live.version, version[i]);
    }
}

CASE(an_older_page_lacks_figures)
{
    struct fl_live live;
    put64(DATA, 5);
    add_list((struct fl_live_list){.at = DATA, .count = 1, .size = 8});
    add_term((struct fl_live_term){.figure = FL_LIVE_REQUESTS, .width = 8});
    page->size = page->lists = 48; /* its arrays are shorter, and lie elsewhere */
    memmove((unsigned char *)page + 48 + 32, &page->term[0], sizeof(page->term[0]));
    page->terms = 48 + 32;
    page->size = 48 + 32 + 16;
    assert_int_equal(read_page(&live), 0);
    assert_figure(&live, FL_LIVE_REQUESTS, 5);
    assert_false(live.known[FL_LIVE_LIVE_BYTES]);
}

CASE(figures_of_a_newer_page_are_left_out)
{
    struct fl_live live;
    put64(DATA, 5);
    add_list((struct fl_live_list){.at = DATA, .count = 1, .size = 8});
    add_term((struct fl_live_term){.figure = FL_LIVE_FIGURES + 7, .width = 8});
    add_term((struct fl_live_term){.figure = UINT16_MAX, .how = FL_LIVE_TALLY, .width = 8});
    add_term((struct fl_live_term){.figure = FL_LIVE_REQUESTS, .width = 8});
    assert_int_equal(read_page(&live), 0);
    assert_figure(&live, FL_LIVE_REQUESTS, 5);
}

/* ---- forged ones ---- */

CASE(a_page_shorter_than_its_arrays_is_refused)
{
    struct fl_live live;
    add_list((struct fl_live_list){.at = DATA, .count = 1, .size = 8});
    page->size = page->lists;
    assert_int_equal(read_page(&live), -EPROTO);
    page->size = sizeof(*page);
    page->nlists = UINT32_MAX;
    assert_int_equal(read_page(&live), -EPROTO);
    page->nlists = 1;
    page->nterms = 0x10000001; /* times 16 wraps around in 32 bits */
    assert_int_equal(read_page(&live), -EPROTO);
    page->nterms = 0;
    page->lists = 8; /* over the head */
    assert_int_equal(read_page(&live), -EPROTO);
    page->lists = UINT32_MAX - 8;
    assert_int_equal(read_page(&live), -EPROTO);
}

CASE(a_page_at_the_end_of_memory_is_no_page)
{
    struct fl_live live;
    assert_int_equal(fl_live_read(&memory, BASE + LEN - 8, &live), -EFAULT);
    assert_int_equal(fl_live_read(&memory, UINT64_MAX - 4, &live), -EFAULT);
    assert_int_equal(fl_live_read(&memory, 0, &live), -EFAULT);
}

CASE(words_outside_their_element_are_refused)
{
    static const struct fl_live_term forged[] = {
        {.width = 8, .offset = 9, .when = FL_LIVE_ALWAYS},
        {.width = 8, .offset = 65535, .when = FL_LIVE_ALWAYS},
        {.width = 3, .when = FL_LIVE_ALWAYS},
        {.width = 255, .when = FL_LIVE_ALWAYS},
        {.width = 8, .when = 15, .when_width = 4},
        {.width = 8, .when = 0, .when_width = 0},
        {.width = 8, .list = 1, .when = FL_LIVE_ALWAYS},
        {.width = 8, .how = 4, .when = FL_LIVE_ALWAYS},
        {.width = 8, .shift = 64, .when = FL_LIVE_ALWAYS},
        {.width = 8, .how = FL_LIVE_BITS, .bits = 9, .when = FL_LIVE_ALWAYS},
        {.width = 4, .how = FL_LIVE_BITS, .bits = 8, .when = FL_LIVE_ALWAYS},
    };
    struct fl_live live;
    add_list((struct fl_live_list){.at = DATA, .count = 1, .size = 16});
    page->nterms = 1;
    for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
        page->term[0] = forged[i];
        if (read_page(&live) != -EPROTO) {
            fail_msg("term %zu is not refused", i);
        }
    }
}

CASE(elements_that_are_none_are_refused)
{
    static const struct fl_live_list forged[] = {
        {.at = DATA, .count = 1, .size = FL_LIVE_ELEMENT + 1},
        {.at = DATA, .count = 1, .size = UINT32_MAX},
        {.at = DATA, .size = 16, .shape = FL_LIVE_CHAIN, .next = 9},
        {.at = DATA, .size = 16, .from = 8, .shape = FL_LIVE_CHAIN, .next = 0},
        {.at = DATA, .count = 1, .size = 16, .shape = FL_LIVE_TABLE + 1},
    };
    struct fl_live live;
    page->nlists = 1;
    for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
        page->list[0] = forged[i];
        if (read_page(&live) != -EPROTO) {
            fail_msg("list %zu is not refused", i);
        }
    }
}

/* What cannot be read is not known; what can is. */
static void assert_lost(struct fl_live_list list, struct fl_live_term term)
{
    struct fl_live live;
    clean();
    put64(DATA, DATA); /* a chain of one, that comes after itself; or bits */
    put64(DATA + 8, UINT64_MAX);
    put64(DATA + 16, 7);
    add_list(list);
    add_term(term);
    add_list((struct fl_live_list){.at = DATA + 16, .count = 1, .size = 8});
    add_term((struct fl_live_term){.figure = FL_LIVE_LIVE_BYTES, .width = 8});
    assert_int_equal(read_page(&live), 0);
    assert_false(live.known[FL_LIVE_REQUESTS]);
    assert_true(reads <= FL_LIVE_READS_MOST + 8);
    if (reads < FL_LIVE_READS_MOST) {
        assert_figure(&live, FL_LIVE_LIVE_BYTES, 7);
    }
}

CASE(what_leads_nowhere_or_never_ends_is_given_up)
{
    struct fl_live_term term = {.figure = FL_LIVE_REQUESTS, .width = 8};
    struct fl_live_term bits = {
        .figure = FL_LIVE_REQUESTS, .how = FL_LIVE_BITS, .width = 8, .bits = 8};
    assert_lost((struct fl_live_list){.at = DATA, .size = 8, .shape = FL_LIVE_CHAIN}, term);
    assert_lost((struct fl_live_list){.at = DATA, .count = UINT64_MAX, .size = 8}, term);
    assert_lost((struct fl_live_list){.at = 8, .count = 1, .size = 8}, term);
    assert_lost((struct fl_live_list){.at = UINT64_MAX - 3, .count = 1, .size = 8}, term);
    assert_lost(
        (struct fl_live_list){.at = DATA, .count = DATA + 8, .size = 8, .shape = FL_LIVE_TABLE},
        term);
    assert_lost((struct fl_live_list){.at = DATA, .count = 1, .size = 16}, bits);
}

/* ---- the file ---- */

static void put_file(uint64_t notes_len)
{
    Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64},
                       .e_phoff = 64,
                       .e_phentsize = sizeof(Elf64_Phdr),
                       .e_phnum = 3};
    Elf64_Phdr segment[3] = {
        {.p_type = PT_LOAD},
        {.p_type = PT_NOTE, .p_vaddr = 0x300, .p_memsz = 20},
        {.p_type = PT_NOTE, .p_vaddr = 0x400, .p_memsz = notes_len},
    };
    memcpy(bytes, &head, sizeof(head));
    memcpy(bytes + 64, segment, sizeof(segment));
}

static void put_note(size_t at, Elf64_Nhdr head, const char *name, int64_t contents)
{
    memcpy(bytes + at, &head, sizeof(head));
    memcpy(bytes + at + sizeof(head), name, strlen(name) + 1);
    memcpy(bytes + at + sizeof(head) + 12, &contents, sizeof(contents));
}

CASE(the_note_leads_to_the_page)
{
    static const Elf64_Nhdr other = {10, 8, 1}, ours = {10, 8, FL_LIVE_NOTE};
    uint64_t at = 0;
    put_file(64);
    put_note(0x400, other, "faultless", 99);
    put_note(0x420, ours, "faultless", PAGE - (BASE + 0x420 + 24));
    assert_int_equal(fl_live_find(&memory, BASE, &at), 0);
    assert_int_equal(at, PAGE);
    put_file(32); /* it is behind the end */
    assert_int_equal(fl_live_find(&memory, BASE, &at), -ENOENT);
}

CASE(a_file_that_is_forged_has_no_note)
{
    static const Elf64_Nhdr forged[] = {
        {UINT32_MAX, UINT32_MAX, FL_LIVE_NOTE},
        {10, UINT32_MAX, FL_LIVE_NOTE},
        {10, 4, FL_LIVE_NOTE},
        {11, 8, FL_LIVE_NOTE},
        {UINT32_MAX, 8, 1},
    };
    uint64_t at = 0;
    for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
        put_file(64);
        put_note(0x400, forged[i], "faultless", 0);
        assert_int_equal(fl_live_find(&memory, BASE, &at), -ENOENT);
    }
    put_file(UINT64_MAX);
    assert_int_equal(fl_live_find(&memory, BASE, &at), -ENOENT);
    ((Elf64_Ehdr *)(void *)bytes)->e_phoff = UINT64_MAX - 100;
    assert_int_equal(fl_live_find(&memory, BASE, &at), -EFAULT);
    ((Elf64_Ehdr *)(void *)bytes)->e_phnum = UINT16_MAX;
    assert_int_equal(fl_live_find(&memory, BASE, &at), -ENOEXEC);
    bytes[0] = 0;
    assert_int_equal(fl_live_find(&memory, BASE, &at), -ENOEXEC);
    assert_int_equal(fl_live_find(&memory, 0, &at), -EFAULT);
}

/* Pages of chance, near to good ones. The sanitizers judge what they make it do. */
CASE(pages_of_chance_do_no_harm)
{
    uint64_t seed = 0x9e3779b97f4a7c15u;
    struct fl_live live;
    for (int round = 0; round < 2000; round++) {
        clean();
        page->nlists = 3;
        page->nterms = 8;
        for (size_t i = 0; i < 40; i++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            size_t where = seed % (offsetof(struct fl_live_page, list) * 4);
            ((unsigned char *)page)[where < 24 ? where + 400 : where] = (unsigned char)(seed >> 32);
        }
        page->size = sizeof(*page);
        int rc = read_page(&live);
        assert_true(rc == 0 || rc == -EPROTO || rc == -EFAULT || rc == -EPROTONOSUPPORT);
        assert_true(reads <= FL_LIVE_READS_MOST + 8 * FL_LIVE_LISTS);
    }
}

CASES_MAIN(.setup = clean)
