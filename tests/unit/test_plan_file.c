/* Plans to bytes and back; what a file may not be, bit by bit; whose plans they are; the file
 * itself. */
#include "plan/store/store.h"
#include "unit/cmocka_all.h"
#include "unit/fake_sys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOM = 16384, G = 65536, HORIZON = 20, HEIGHT = 8 * G, SLOT = 80, PLAN = 48 };

static const struct fl_slot good[] = {
    {.size = 3 * G,
     .headroom = G,
     .least = G,
     .most = 2 * G,
     .align = 4096,
     .birth = 1,
     .death = 4,
     .offset = {G, FL_PACK_NONE}},
    {.size = 4096,
     .least = 4096,
     .most = 4096,
     .align = 2 * G,
     .birth = 0,
     .death = HORIZON,
     .offset = {4 * G, FL_PACK_NONE},
     .kind = FL_SLOT_SPANS_STEPS},
    {.size = G + 1,
     .align = 1,
     .birth = 0,
     .death = HORIZON,
     .offset = {0, 6 * G},
     .kind = FL_SLOT_DOUBLE_BUFFERED,
     .zone = 3},
    {.size = 64 * G,
     .least = 5,
     .most = 64 * G,
     .align = 1,
     .birth = 3,
     .death = 9,
     .offset = {FL_PACK_NONE, FL_PACK_NONE},
     .kind = FL_SLOT_KEPT},
    {.size = 9,
     .align = 1,
     .birth = 4,
     .death = 5,
     .offset = {FL_PACK_NONE, FL_PACK_NONE},
     .kind = FL_SLOT_KEPT},
};
enum { GOOD = sizeof good / sizeof good[0] };

static _Alignas(8) unsigned char file[ROOM], other[ROOM];

static struct fl_file_plan plan_of(uint64_t key, uint64_t signature, size_t n)
{
    return (struct fl_file_plan){.key = key,
                                 .signature = signature,
                                 .horizon = HORIZON,
                                 .height = HEIGHT,
                                 .granule = G,
                                 .slot = good,
                                 .n = n};
}

/* Plans 10, 11 and 12 of program 1, 2 and 1. */
static size_t write_three(void)
{
    struct fl_file f;

    assert_true(fl_file_begin(&f, file, sizeof file));
    for (uint64_t i = 0; i < 3; i++) {
        struct fl_file_plan p = plan_of(1 + i % 2, 10 + i, GOOD - i);
        assert_int_equal(fl_file_add(&f, &p), 0);
    }
    return fl_file_end(&f);
}

static void same_slots(const struct fl_slot *a, const struct fl_slot *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_true(a[i].size == b[i].size && a[i].least == b[i].least && a[i].most == b[i].most);
        assert_true(a[i].align == b[i].align && a[i].headroom == b[i].headroom);
        assert_true(a[i].birth == b[i].birth && a[i].death == b[i].death);
        assert_true(a[i].offset[0] == b[i].offset[0] && a[i].offset[1] == b[i].offset[1]);
        assert_true(a[i].kind == b[i].kind && a[i].zone == b[i].zone);
    }
}

static void what_was_written_is_read(void **state)
{
    struct fl_file_plan p;
    size_t len = write_three(), at = 0, length;
    (void)state;
    assert_int_equal(len, FL_FILE_HEAD + fl_file_cost(5) + fl_file_cost(4) + fl_file_cost(3));
    assert_int_equal(fl_file_length(file, FL_FILE_HEAD, &length), 0);
    assert_int_equal(length, len);
    assert_int_equal(fl_file_check(file, len), 0);
    assert_int_equal(fl_file_check(file, sizeof file), 0); /* what follows does not count */
    for (uint64_t signature = 10; signature <= 12; signature += 2) {
        assert_int_equal(fl_file_find(file, 1, &at, &p), 0);
        assert_true(p.key == 1 && p.signature == signature && p.horizon == HORIZON);
        assert_true(p.height == HEIGHT && p.granule == G && p.n == GOOD + 10 - signature);
        same_slots(p.slot, good, p.n);
    }
    assert_int_equal(fl_file_find(file, 1, &at, &p), -ENOKEY);
    at = 0;
    assert_int_equal(fl_file_find(file, 2, &at, &p), 0);
    assert_int_equal(p.signature, 11);
    at = 0;
    assert_int_equal(fl_file_find(file, 3, &at, &p), -ENOKEY);

    struct fl_file f;
    assert_true(fl_file_begin(&f, file, FL_FILE_HEAD)); /* a file without a plan is one */
    assert_int_equal(fl_file_end(&f), FL_FILE_HEAD);
    assert_int_equal(fl_file_check(file, FL_FILE_HEAD), 0);
    at = 0;
    assert_int_equal(fl_file_find(file, 1, &at, &p), -ENOKEY);
    assert_false(fl_file_begin(&f, file, FL_FILE_HEAD - 1));
}

static void the_bytes_are_those_of_the_document(void **state)
{
    static const unsigned char head[] = "FLPLANS\n\3\0\0\0\3\0\0\0";
    static const unsigned char slot[] = /* the second */
        "\0\20\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\20\0\0\0\0\0\0\0\20\0\0\0\0\0\0"
        "\0\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\24\0\0\0\0\0\0\0"
        "\0\0\4\0\0\0\0\0\377\377\377\377\377\377\377\377\1\0\0\0\0\0\0";
    size_t len = write_three();
    (void)state;
    assert_memory_equal(file, head, 16);
    assert_int_equal(file[16] + 256 * file[17], len);
    assert_int_equal(file[FL_FILE_HEAD + 40], 5);
    assert_memory_equal(file + FL_FILE_HEAD + PLAN + SLOT, slot, SLOT);
    assert_int_equal(file[FL_FILE_HEAD + PLAN + 2 * SLOT + 76], 3); /* the third one's zone */
}

static void each_fault_has_its_answer_and_its_words(void **state)
{
    static const int answers[] = {-ENOENT,  -EINVAL, -ENOTSUP, -EMSGSIZE,
                                  -EBADMSG, -EILSEQ, -ENOKEY,  -EIO};
    size_t len = write_three(), length;
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(fl_file_why(answers[i]), fl_file_why(answers[j]));
        }
    }
    file[7] = '\r'; /* as what turns line ends would leave it */
    assert_int_equal(fl_file_check(file, len), -EINVAL);
    assert_int_equal(fl_file_check(file, 0), -EINVAL);
    (void)write_three();
    file[8] = 1;
    assert_int_equal(fl_file_check(file, len), -ENOTSUP);
    (void)write_three();
    assert_int_equal(fl_file_check(file, len - 1), -EMSGSIZE);
    file[22] = 1;
    assert_int_equal(fl_file_length(file, len, &length), -EMSGSIZE);
    (void)write_three();
    file[len - 1] ^= 1;
    assert_int_equal(fl_file_check(file, len), -EBADMSG);
}

/* A forged checksum gets slots that could have been added, or nothing. */
static void forged_is_refused_or_harmless(size_t len)
{
    uint64_t sum = fl_file_checksum(file, len);
    struct fl_file_plan p;
    struct fl_file f;

    memcpy(file + FL_FILE_CHECKSUM_AT, &sum, sizeof sum);
    if (fl_file_check(file, len) != 0) {
        return;
    }
    assert_true(fl_file_begin(&f, other, sizeof other));
    for (uint64_t key = 0; key < 4; key++) {
        for (size_t at = 0; fl_file_find(file, key, &at, &p) == 0;) {
            assert_true(at + fl_file_cost(p.n) <= len);
            assert_int_equal(fl_file_add(&f, &p), 0);
        }
    }
}

static void no_bit_may_change(void **state)
{
    size_t len = write_three();
    (void)state;
    for (size_t bit = 0; bit < 8 * len; bit++) {
        len = write_three();
        file[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_int_not_equal(fl_file_check(file, len), 0);
        forged_is_refused_or_harmless(len);
    }
    for (size_t cut = 0; cut < len; cut++) {
        (void)write_three();
        assert_int_not_equal(fl_file_check(file, cut), 0);
        memcpy(other, file, len);
        memset(file + cut, 0, len - cut);
        assert_int_equal(fl_file_check(file, len) == 0, memcmp(other, file, len) == 0);
    }
}

static void slots_that_cannot_be_are_refused(void **state)
{
    static const struct {
        size_t slot;
        struct fl_slot is;
    } row[] = {
#define SLOTS(number, ...)                                                                         \
    {                                                                                              \
        number,                                                                                    \
        {                                                                                          \
            .size = G, .align = 1, .birth = 1, .death = 2, __VA_ARGS__                             \
        }                                                                                          \
    }
#define AT(a, b) .offset = {a, b}
        SLOTS(0, AT(0, FL_PACK_NONE)), /* the one that can */
        SLOTS(0, AT(1, FL_PACK_NONE)),
        SLOTS(0, AT(HEIGHT, FL_PACK_NONE)),
        SLOTS(0, AT((uint64_t)0 - G, FL_PACK_NONE)),
        SLOTS(0, AT(FL_PACK_NONE, FL_PACK_NONE)),
        SLOTS(0, AT(0, 0)),
        SLOTS(0, AT(0, FL_PACK_NONE), .least = 2, .most = 1),
        SLOTS(0, AT(0, FL_PACK_NONE), .most = G + 1),
        SLOTS(0, AT(0, FL_PACK_NONE), .headroom = G + 1),
        {0, {.size = HEIGHT, .align = 1, .death = 1, AT(G, FL_PACK_NONE)}},
        {0, {.size = (uint64_t)1 << 47, .align = 1, .death = 1, AT(0, FL_PACK_NONE)}},
        {0, {.size = G, .align = 2 * G, .death = 1, AT(G, FL_PACK_NONE)}},
        {0, {.size = G, .align = 3, .death = 1, AT(0, FL_PACK_NONE)}},
        {0, {.size = G, .align = 1, .birth = 3, .death = 3, AT(0, FL_PACK_NONE)}},
        {0, {.size = G, .align = 1, .death = HORIZON + 1, AT(0, FL_PACK_NONE)}},
        SLOTS(1, AT(0, FL_PACK_NONE), .kind = FL_SLOT_SPANS_STEPS),
        SLOTS(2, AT(0, 6 * G), .kind = FL_SLOT_DOUBLE_BUFFERED),
        {2, {.size = G, .death = HORIZON, AT(0, FL_PACK_NONE), .kind = FL_SLOT_DOUBLE_BUFFERED}},
        SLOTS(0, AT(0, FL_PACK_NONE), .zone = 1), /* in one place */
        {2,
         {.size = G,
          .death = HORIZON,
          AT(0, G),
          .kind = FL_SLOT_DOUBLE_BUFFERED,
          .zone = FL_PLAN_ZONES + 1}},
        SLOTS(3, AT(0, FL_PACK_NONE), .kind = FL_SLOT_KEPT),
        SLOTS(3, AT(FL_PACK_NONE, 0), .kind = FL_SLOT_KEPT),
        SLOTS(4, AT(FL_PACK_NONE, FL_PACK_NONE), .kind = (enum fl_slot_kind)(FL_SLOT_KEPT + 1)),
#undef SLOTS
#undef AT
    };
    struct fl_slot slot[GOOD];
    (void)state;
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        struct fl_file f;
        struct fl_file_plan p = plan_of(1, 1, GOOD);
        memcpy(slot, good, sizeof slot);
        slot[row[r].slot] = row[r].is;
        p.slot = slot;
        assert_true(fl_file_begin(&f, file, sizeof file));
        if (fl_file_add(&f, &p) != (r == 0 ? 0 : -EINVAL)) {
            fail_msg("row %zu", r);
        }
    }
    for (int fault = 0; fault < 5; fault++) {
        struct fl_file f;
        struct fl_file_plan p = plan_of(1, 1, 1);
        p.height = fault == 1 ? HEIGHT + 1 : fault == 2 ? (uint64_t)1 << 48 : p.height;
        p.granule = fault == 3 ? 2048 : p.granule;
        p.horizon = fault == 4 ? (uint64_t)1 << 32 : p.horizon;
        assert_true(fl_file_begin(&f, file, sizeof file));
        assert_int_equal(fl_file_add(&f, &p), fault == 0 ? 0 : -EINVAL);
    }
}

static void others_plans_are_kept(void **state)
{
    struct fl_file f;
    struct fl_file_plan p = plan_of(1, 77, 1);
    size_t at = 0;
    (void)state;
    (void)write_three();
    assert_true(fl_file_begin(&f, other, sizeof other));
    assert_int_equal(fl_file_add(&f, &p), 0);
    assert_int_equal(fl_file_keep(&f, file, 1), 0);
    assert_int_equal(fl_file_check(other, fl_file_end(&f)), 0);
    assert_int_equal(fl_file_find(other, 1, &at, &p), 0);
    assert_int_equal(p.signature, 77);
    assert_int_equal(fl_file_find(other, 1, &at, &p), -ENOKEY);
    at = 0;
    assert_int_equal(fl_file_find(other, 2, &at, &p), 0);
    assert_int_equal(p.signature, 11);

    /* what has no room is left out, and what comes after it is not */
    size_t room = FL_FILE_HEAD + fl_file_cost(GOOD) + fl_file_cost(GOOD - 2);
    assert_true(fl_file_begin(&f, other, room));
    assert_int_equal(fl_file_keep(&f, file, 3), 1);
    assert_int_equal(fl_file_end(&f), room);
    assert_int_equal(fl_file_check(other, room), 0);
    p = plan_of(1, 1, 0);
    assert_int_equal(fl_file_add(&f, &p), -ENOSPC);

    assert_true(fl_file_begin(&f, other, sizeof other));
    for (unsigned i = 0; i < FL_FILE_PLANS; i++) {
        assert_int_equal(fl_file_add(&f, &p), 0);
    }
    assert_int_equal(fl_file_add(&f, &p), -ENOSPC);
    assert_int_equal(fl_file_keep(&f, file, 3), 3);
    assert_int_equal(fl_file_check(other, fl_file_end(&f)), 0);
}

/* Seven plans of 32768 slots come to more than 16 MiB. */
static void no_file_is_too_long_to_be_read(void **state)
{
    enum { BYTES = FL_FILE_BYTES + FL_MIB };
    unsigned char *buf = malloc(BYTES);
    struct fl_slot *slot = calloc(FL_FILE_SLOTS, sizeof *slot);
    struct fl_file_plan p = plan_of(1, 1, FL_FILE_SLOTS);
    struct fl_file f;
    size_t len, added = 0;
    (void)state;
    assert_true(buf != NULL && slot != NULL);
    for (uint32_t i = 0; i < FL_FILE_SLOTS; i++) {
        slot[i] = (struct fl_slot){
            .death = 1, .offset = {FL_PACK_NONE, FL_PACK_NONE}, .kind = FL_SLOT_KEPT};
    }
    p.slot = slot;
    assert_true(fl_file_begin(&f, buf, BYTES));
    while (added < 8 && fl_file_add(&f, &p) == 0) {
        added++;
    }
    len = fl_file_end(&f);
    assert_int_equal(fl_file_check(buf, len), 0);
    assert_int_equal(added, 6);
    free(buf);
    free(slot);
}

static uint64_t key_of(const char *exe, const char *args, size_t len, const char *build)
{
    struct fl_file_program p = {exe, args, len, build, strlen(build)};

    return fl_file_key(&p);
}
#define KEY(exe, args, build) key_of(exe, args, sizeof(args), build)

static void programs_are_told_apart(void **state)
{
    (void)state;
    fake_install();
    uint64_t key = KEY("/usr/bin/python3", "python3\0-u\0a/train.py\0--lr=1", "x");
    assert_true(key == KEY("python3", "/usr/bin/python3\0train.py\0--lr=2\0", "x"));
    assert_true(key != KEY("python3", "python3\0eval.py", "x"));
    assert_true(key != KEY("python3", "python3\0train.py", "y"));
    assert_true(key != KEY("pypy3", "python3\0train.py", "x"));
    assert_true(key != KEY("python3", "python3", "x"));
    assert_true(KEY("a", "a", "x") == KEY("a", "", "x"));
    assert_true(KEY("a", "a\0\0-", "x") == KEY("a", "a", "x"));
    fl_page.huge *= 2;
    assert_true(key != KEY("python3", "python3\0train.py", "x"));
    fl_page.huge /= 2;
    assert_true(fl_file_key_here() == fl_file_key_here());
    fake_file("/proc/self/cmdline", "other");
    uint64_t here = fl_file_key_here();
    assert_true(here == fl_file_key_here() && here != 0);
    assert_true(fl_file_hash(1, "a", 1) != fl_file_hash(1, "a", 2)); /* the zero counts */
}

static void the_file_is_written_and_read(void **state)
{
    char path[] = "/tmp/fl_test_XXXXXX";
    size_t len = write_three(), found = 1;
    (void)state;
    fake_install();
    fl_sys = fl_sys_linux;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(fl_file_look(path, &found), -EINVAL); /* empty: that may be written to */
    assert_int_equal(found, 0);
    assert_int_equal(fl_file_write(path, file, len), 0);
    assert_int_equal(fl_file_look(path, &found), 0);
    assert_int_equal(found, len);
    assert_int_equal(fl_file_read(path, other, found), 0);
    assert_memory_equal(other, file, len);
    assert_int_equal(truncate(path, (off_t)len - 8), 0);
    assert_int_equal(fl_file_read(path, other, found), -EBADMSG);
    assert_int_equal(fl_file_write(path, file, len), 0); /* a broken one may be replaced */
    assert_int_equal(fl_file_read(path, other, found), 0);
    unlink(path);
    assert_int_equal(fl_file_look(path, &found), -ENOENT);
    assert_int_equal(fl_file_read(path, other, len), -ENOENT);

    /* a file that is no plan is left alone */
    assert_int_equal(fl_sys.append_file(path, "# a long line of a person's letters\n", 36), 0);
    assert_int_equal(fl_file_look(path, &found), -EINVAL);
    assert_int_equal(fl_file_write(path, file, len), -EINVAL);
    assert_int_equal(fl_sys.read_file(path, (char *)other, sizeof other), 0);
    assert_int_equal(other[0], '#');
    unlink(path);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(the_bytes_are_those_of_the_document),
        cmocka_unit_test(each_fault_has_its_answer_and_its_words),
        cmocka_unit_test(no_bit_may_change),
        cmocka_unit_test(slots_that_cannot_be_are_refused),
        cmocka_unit_test(others_plans_are_kept),
        cmocka_unit_test(no_file_is_too_long_to_be_read),
        cmocka_unit_test(programs_are_told_apart),
        cmocka_unit_test(the_file_is_written_and_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
