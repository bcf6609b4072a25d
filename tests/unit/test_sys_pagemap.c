/* What the real kernel tells of single huge pages, before and after fork has shared and writing has
 * split them; that they can be made whole again; and what children do not get. */
#include "cases.h"
#include "unit/crew_fixture.h"

#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define KIB(n) ((size_t)(n) << 10)

/* Huge pages: collapsed, if they did not come so. */
static struct fl_range huge_pages(size_t len)
{
    struct fl_range r = map(len);

    (void)fl_sys_linux.advise(r, FL_ADVICE_HUGE);
    memset((void *)r.base, 0x5a, len);
    (void)fl_sys_linux.advise(r, FL_ADVICE_COLLAPSE);
    return r;
}

static void assert_split(struct fl_range r, size_t from, size_t len)
{
    struct fl_range found = {0, 0};

    if (len == 0) {
        assert_int_equal(fl_sys_linux.find_split(r, &found), -ENOENT);
        return;
    }
    assert_int_equal(fl_sys_linux.find_split(r, &found), 0);
    assert_int_equal(found.base - r.base, from);
    assert_int_equal(found.len, len);
}

static void assert_survey(struct fl_range r, size_t present, size_t own)
{
    size_t is_present = 1, is_own = 1;

    assert_int_equal(fl_sys_linux.survey(r, &is_present, &is_own), 0);
    assert_int_equal(is_present, present);
    assert_int_equal(is_own, own);
}

CASE(huge_pages_are_whole_and_own)
{
    struct fl_range r = huge_pages(MIB(8));
    assert_split(r, 0, 0);
    assert_survey(r, MIB(8), MIB(8));
    assert_survey(part(r, MIB(3), KIB(4)), KIB(4), KIB(4));
    empty(r);
    assert_split(r, 0, 0); /* what is not there is not split */
    assert_survey(r, 0, 0);
}

CASE(what_is_split_is_found_in_whole_huge_pages)
{
    struct fl_range r = huge_pages(MIB(12));
    empty(part(r, MIB(3), KIB(4)));
    assert_split(r, MIB(2), MIB(2));
    assert_survey(part(r, MIB(2), MIB(2)), MIB(2) - KIB(4), MIB(2) - KIB(4));
    empty(part(r, MIB(6), KIB(4))); /* the first page of one, the last of another */
    empty(part(r, MIB(10) - KIB(4), KIB(4)));
    struct fl_range rest = part(r, MIB(4), MIB(8)), found;
    assert_int_equal(fl_sys_linux.find_split(rest, &found), 0);
    assert_int_equal(found.base - r.base, MIB(6));
    assert_true(found.len == MIB(4) || found.len == MIB(2)); /* neighbours, if there is no gap */
    assert_split(part(r, MIB(10), MIB(2)), 0, 0);
    *(volatile char *)(r.base + MIB(3)) = 0x5a;
    assert_int_equal(fl_sys_linux.advise(part(r, MIB(2), MIB(2)), FL_ADVICE_COLLAPSE), 0);
    assert_split(part(r, 0, MIB(6)), 0, 0);
    assert_survey(part(r, MIB(2), MIB(2)), MIB(2), MIB(2));
}

static struct fl_range memory;

static void rewrite_some(void)
{
    assert_survey(memory, MIB(8), 0); /* all of it shared, and whole */
    assert_split(memory, 0, 0);
    for (size_t at = 0; at < MIB(1) + KIB(64); at += KIB(4)) { /* most of the first one */
        *(volatile char *)(memory.base + at) = 0x5b;
    }
    *(volatile char *)(memory.base + MIB(5)) = 0x5b; /* a page of the third */
    assert_split(memory, 0, MIB(2));
    assert_split(part(memory, MIB(2), MIB(6)), MIB(2), MIB(2));
    assert_survey(part(memory, 0, MIB(2)), MIB(2), MIB(1) + KIB(64));
    assert_survey(part(memory, MIB(2), MIB(2)), MIB(2), 0);
    assert_survey(part(memory, MIB(4), MIB(2)), MIB(2), KIB(4));
    assert_survey(part(memory, 0, KIB(4)), KIB(4), KIB(4));
    assert_survey(part(memory, MIB(2), KIB(4)), KIB(4), 0);
    /* While the child lives: it keeps what it has, the parent gets a huge page of its own. */
    assert_int_equal(fl_sys_linux.advise(part(memory, 0, MIB(2)), FL_ADVICE_COLLAPSE), 0);
    assert_split(part(memory, 0, MIB(4)), 0, 0);
    assert_survey(part(memory, 0, MIB(2)), MIB(2), MIB(2));
    const unsigned char *p = (const unsigned char *)memory.base;
    assert_true(p[0] == 0x5b && p[1] == 0x5a && p[MIB(2) - 1] == 0x5a);
}

static int memory_is_as_it_was(void)
{
    const unsigned char *p = (const unsigned char *)memory.base;

    return p[0] == 0x5a && memcmp(p, p + 1, memory.len - 1) == 0 ? 0 : 1;
}

CASE(after_fork_the_kernel_tells_what_is_whose)
{
    memory = huge_pages(MIB(8));
    assert_int_equal(status_of_child(rewrite_some, memory_is_as_it_was), 0);
    assert_survey(memory, MIB(8), MIB(8)); /* the child is gone */
    assert_split(memory, MIB(4), MIB(2));
    assert_int_equal(fl_sys_linux.advise(memory, FL_ADVICE_COLLAPSE), 0);
    assert_split(memory, 0, 0);
}

static void assert_touched(struct fl_range all, unsigned most, size_t n,
                           const struct fl_range want[])
{
    struct fl_range found[8];

    assert_int_equal(fl_sys_linux.touched(all, found, most), n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(found[i].base, want[i].base);
        assert_int_equal(found[i].len, want[i].len);
    }
}

static void look_for_what_was_touched(void)
{
    struct fl_range r = map(MIB(8));
    struct fl_range want[] = {part(r, KIB(4), KIB(8)), part(r, MIB(3), KIB(4)),
                              part(r, MIB(6), MIB(2))};

    assert_touched(r, 8, 0, want);
    (void)fl_sys_linux.advise(want[2], FL_ADVICE_HUGE);
    for (size_t i = 0; i < 3; i++) {
        memset((void *)want[i].base, 1, want[i].len);
    }
    assert_touched(r, 8, 3, want);
    assert_touched(r, 2, 2, want); /* there may be more: the caller goes on behind the last */
    assert_touched(part(r, MIB(3) + KIB(4), MIB(5) - KIB(4)), 8, 1, &want[2]);
    empty(want[1]);
    want[1] = want[2];
    assert_touched(r, 8, 2, want);
    want[0] = part(r, KIB(8), KIB(4)); /* a part of one */
    assert_touched(part(r, KIB(8), MIB(1)), 8, 1, want);
}

static void assert_present(struct fl_range r, size_t bytes)
{
    size_t n = 1;

    assert_int_equal(fl_sys_linux.present(r, &n), 0);
    assert_int_equal(n, bytes);
}

/* More pieces than one call to the kernel tells of. */
static void look_for_what_is_present(size_t zeros)
{
    struct fl_range r = map(MIB(8));
    size_t there = 0;

    (void)fl_sys_linux.advise(r, FL_ADVICE_NO_HUGE);
    assert_present(r, 0);
    for (size_t at = 0; at < MIB(4); at += KIB(32)) {
        memset((void *)(r.base + at), 1, KIB(8));
        there += KIB(8);
    }
    assert_present(r, there);
    assert_present(part(r, 0, KIB(36)), KIB(12));
    assert_present(part(r, MIB(4), MIB(4)), 0);
    assert_int_equal(*(volatile char *)(r.base + MIB(6)), 0); /* the kernel's page of zeros */
    assert_present(part(r, MIB(4), MIB(4)), zeros);
    empty(r);
    assert_present(r, 0);
    assert_int_equal(fl_sys_linux.unmap(part(r, MIB(2), MIB(2))), 0);
    memset((void *)r.base, 1, MIB(1));
    assert_present(r, MIB(1)); /* nothing is mapped amid it */
}

/* ioctl(2) answers as before Linux 6.7. */
static int look_without_scan(void)
{
    struct fl_range found;

    refuse(SYS_ioctl, SECCOMP_RET_ERRNO | ENOTTY, -1);
    if (fl_sys_linux.find_split((struct fl_range){0, 0}, &found) != -ENOSYS) {
        return 2;
    }
    look_for_what_was_touched();
    look_for_what_is_present(KIB(4));
    return 0;
}

/* Zeros are all that is there, and no memory. Base pages: before Linux 6.16 the kernel does not say
 * which huge page is its own of zeros. */
CASE(what_was_only_read_holds_nothing)
{
    struct fl_range r = map(MIB(8)), written = part(r, KIB(8), KIB(4));
    volatile const char *p = (volatile const char *)r.base;

    (void)fl_sys_linux.advise(r, FL_ADVICE_NO_HUGE);
    for (size_t i = 0; i < r.len; i += KIB(4)) {
        assert_int_equal(p[i], 0);
    }
    assert_touched(r, 8, 0, NULL);
    memset((void *)written.base, 1, written.len);
    assert_touched(r, 8, 1, &written);
}

CASE(the_kernel_tells_what_was_touched)
{
    look_for_what_was_touched();
    look_for_what_is_present(0);
    assert_int_equal(status_of_child(NULL, look_without_scan), 0);
}

static int look_beside_kept(void)
{
    const volatile char *p = (const volatile char *)memory.base;
    size_t n;

    if (p[0] != 0x5a || p[MIB(2) - 1] != 0x5a || p[MIB(4)] != 0x5a || p[MIB(8) - 1] != 0x5a) {
        return 1;
    }
    if (fl_sys_linux.resident(part(memory, MIB(2), MIB(2)), &n) != -ENOMEM) {
        return 2; /* something is mapped there */
    }
    return fl_sys_linux.map_at(part(memory, MIB(2), MIB(2))) == 0 ? 0 : 3;
}

CASE(children_do_not_get_what_is_kept)
{
    memory = huge_pages(MIB(8));
    struct fl_range kept = part(memory, MIB(2), MIB(2));
    assert_int_equal(fl_sys_linux.advise(kept, FL_ADVICE_NO_FORK), 0);
    assert_int_equal(status_of_child(NULL, look_beside_kept), 0);
    assert_survey(kept, MIB(2), MIB(2)); /* never shared, so never split */
    assert_int_equal(fl_sys_linux.advise(kept, FL_ADVICE_FORK), 0);
    assert_int_equal(status_of_child(NULL, memory_is_as_it_was), 0);
    assert_int_equal(memory_is_as_it_was(), 0);
}

static int as_nobody(void)
{
    if (setgid(65534) != 0 || setuid(65534) != 0) {
        return 1;
    }
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* or its own /proc would be root's */
    struct fl_range r = huge_pages(MIB(4)), found;
    size_t present, own;
    empty(part(r, MIB(3), KIB(4)));
    if (fl_sys_linux.find_split(r, &found) != 0 || found.base != r.base + MIB(2)) {
        return 2;
    }
    if (fl_sys_linux.survey(r, &present, &own) != 0 || present != MIB(4) - KIB(4) ||
        own != present) {
        return 3;
    }
    return 0;
}

static int as_nobody_undumpable(void)
{
    struct fl_range r = huge_pages(MIB(4)), found;
    size_t present = 1, own = 1;

    if (setgid(65534) != 0 || setuid(65534) != 0) {
        return 1;
    }
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (fl_sys_linux.find_split(r, &found) != -EACCES ||
        fl_sys_linux.survey(r, &present, &own) != -EACCES) {
        return 2;
    }
    return present == 0 && own == 0 ? 0 : 3;
}

CASE(any_user_is_told_of_his_own_memory)
{
    if (geteuid() == 0) { /* else the others have shown it */
        assert_int_equal(status_of_child(NULL, as_nobody), 0);
        assert_int_equal(status_of_child(NULL, as_nobody_undumpable), 0);
    }
}

CASE(a_confined_process_does_not_ask)
{
    struct fl_range r = map(fl_page.huge), found[4];
    size_t present;

    fl_sys_confine(true);
    assert_int_equal(fl_sys_linux.touched(r, found, 4), -EPERM);
    assert_int_equal(fl_sys_linux.present(r, &present), -EPERM);
    fl_sys_confine(false);
    assert_int_equal(fl_sys_linux.touched(r, found, 4), 0);
}

int main(void)
{
    fl_sys_boot();
    struct fl_range found, r = fl_page.thp ? huge_pages(fl_page.huge) : map(fl_page.huge);
    if (fl_page.huge != MIB(2) || fl_sys_linux.find_split(r, &found) != -ENOENT) {
        printf("SKIP test_sys_pagemap: needs PAGEMAP_SCAN (Linux 6.7) and huge pages of 2 MiB\n");
        return 77;
    }
    return RUN_CASES(.teardown = unmap_all);
}
