/* Huge pages that move without a copy, by the real kernel: what comes along, what is refused, and
 * what is left behind. */
#include "cases.h"
#include "unit/crew_fixture.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static void write_to(struct fl_range r, int with)
{
    memset((void *)r.base, with, r.len);
}

static bool is_full_of(struct fl_range r, int with)
{
    const unsigned char *p = (const unsigned char *)r.base;

    return p[0] == with && memcmp(p, p + 1, r.len - 1) == 0;
}

/* `len` bytes full of `with`, in huge pages or not. */
static struct fl_range filled(size_t len, int with, bool huge)
{
    struct fl_range r = map(len);

    (void)fl_sys_linux.advise(r, huge ? FL_ADVICE_HUGE : FL_ADVICE_NO_HUGE);
    write_to(r, with);
    return r;
}

static bool is_huge(struct fl_range r)
{
    struct fl_range split;

    return fl_sys_linux.find_split(r, &split) == -ENOENT;
}

/* One batch of one piece. *out: bytes moved. */
static int move(struct fl_range from, struct fl_range to, size_t *out)
{
    int fd = -1;

    *out = 0;
    assert_int_equal(fl_sys_linux.move_begin(to, &fd), 0);
    int rc = fl_sys_linux.move_pages(fd, from, to.base, out);
    fl_sys_linux.move_end(fd, to);
    return rc;
}

CASE(pages_move_with_what_is_in_them)
{
    for (int huge = 0; huge < 2; huge++) {
        struct fl_range from = filled(MIB(8), 0x5a, huge), to = map(MIB(8));
        size_t moved;
        bool was_huge = is_huge(from);
        assert_int_equal(move(from, to, &moved), 0);
        assert_int_equal(moved, MIB(8));
        assert_int_equal(resident(from), 0);
        assert_int_equal(resident(to), MIB(8));
        assert_int_equal(is_huge(to), was_huge);
        assert_true(is_full_of(to, 0x5a));
        assert_true(is_full_of(from, 0)); /* mapped still, with nothing in it */
        write_to(to, 1);                  /* and nothing is held up any more */
    }
}

CASE(holes_are_passed_over)
{
    struct fl_range from = filled(MIB(8), 0x5a, false), to = map(MIB(8));
    size_t moved;
    empty(part(from, MIB(1), MIB(5)));
    assert_int_equal(move(from, to, &moved), 0);
    assert_int_equal(moved, MIB(8));
    assert_int_equal(resident(to), MIB(3));
    assert_true(is_full_of(part(to, 0, MIB(1)), 0x5a) &&
                is_full_of(part(to, MIB(6), MIB(2)), 0x5a));
    assert_true(is_full_of(part(to, MIB(1), MIB(5)), 0));
}

CASE(what_is_there_is_not_replaced)
{
    struct fl_range from = filled(MIB(4), 0x5a, true), to = map(MIB(4));
    size_t moved;
    write_to(part(to, MIB(3), 4096), 0x77);
    int rc = move(from, to, &moved);
    assert_int_equal(rc, -EAGAIN);          /* a part of it moved */
    assert_in_range(moved, MIB(2), MIB(3)); /* the second huge page may have come to there */
    size_t first = moved;
    assert_int_equal(
        move(part(from, first, MIB(4) - first), part(to, first, MIB(4) - first), &moved),
        first == MIB(3) ? -EEXIST : -EAGAIN);
    assert_true(is_full_of(part(to, 0, first), 0x5a));
    assert_true(is_full_of(part(to, MIB(3), 4096), 0x77));
    assert_true(is_full_of(part(from, MIB(3), MIB(1)), 0x5a));
}

static struct fl_range source, target;

static int source_is_as_it_was(void)
{
    return is_full_of(source, 0x5a) ? 0 : 1;
}

static void its_move_is_refused(void)
{
    size_t moved;

    assert_int_equal(move(source, target, &moved), -EBUSY);
    assert_int_equal(moved, 0);
    assert_true(is_full_of(source, 0x5a));
}

CASE(what_a_child_shares_does_not_move)
{
    for (int huge = 0; huge < 2; huge++) {
        size_t moved;
        source = filled(MIB(4), 0x5a, huge);
        target = map(MIB(4));
        assert_int_equal(status_of_child(its_move_is_refused, source_is_as_it_was), 0);
        write_to(source, 0x5b); /* after the child's end it is the parent's own again */
        assert_int_equal(move(source, target, &moved), 0);
        assert_true(is_full_of(target, 0x5b));
    }
}

CASE(a_piece_of_two_maps_is_refused)
{
    struct fl_range from = filled(MIB(4), 0x5a, true), to = map(MIB(4));
    size_t moved;
    assert_int_equal(madvise((void *)from.base, MIB(2), MADV_DONTDUMP), 0);
    assert_int_equal(move(from, to, &moved), -EINVAL);
    assert_int_equal(moved, 0);
    assert_int_equal(move(part(from, 0, MIB(2)), to, &moved), 0);
    assert_int_equal(move(part(from, MIB(2), MIB(2)), part(to, MIB(2), MIB(2)), &moved), 0);
    assert_true(is_full_of(to, 0x5a));
}

CASE(descriptors_are_open_while_it_lasts)
{
    struct fl_range to = map(MIB(2));
    unsigned before = descriptors();
    int fd;
    assert_int_equal(fl_sys_linux.move_begin(to, &fd), 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(descriptors(), before + 1);
    fl_sys_linux.move_end(fd, to);
    assert_int_equal(descriptors(), before);
    struct rlimit old, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = (struct rlimit){(rlim_t)dup(0), old.rlim_max};
    assert_int_equal(close((int)none.rlim_cur), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(fl_sys_linux.move_begin(to, &fd), -EMFILE);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
}

CASE(another_registration_is_left_alone)
{
    struct fl_range to = map(MIB(2));
    int fd, theirs = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register reg = {.range = {to.base, to.len}, .mode = UFFDIO_REGISTER_MODE_WP};
    assert_true(theirs >= 0);
    assert_int_equal(ioctl(theirs, UFFDIO_API, &api), 0);
    assert_int_equal(ioctl(theirs, UFFDIO_REGISTER, &reg), 0);
    unsigned before = descriptors();
    assert_int_equal(fl_sys_linux.move_begin(to, &fd), -EBUSY);
    assert_int_equal(descriptors(), before);
    close(theirs);
    assert_int_equal(fl_sys_linux.move_begin(to, &fd), 0);
    fl_sys_linux.move_end(fd, to);
}

static int move_as_nobody(void)
{
    if (setgid(65534) != 0 || setuid(65534) != 0) {
        return 2;
    }
    struct fl_range from = filled(MIB(4), 0x5a, true), to = map(MIB(4));
    size_t moved;
    return move(from, to, &moved) == 0 && moved == MIB(4) && is_full_of(to, 0x5a) ? 0 : 1;
}

CASE(any_user_may)
{
    if (geteuid() == 0) { /* else the others have shown it */
        assert_int_equal(status_of_child(NULL, move_as_nobody), 0);
    }
}

static int begin_confined(void)
{
    struct fl_range to = map(MIB(2));
    int fd;

    refuse(SYS_userfaultfd, SECCOMP_RET_KILL_PROCESS, -1);
    fl_sys_confine(true);
    return fl_sys_linux.move_begin(to, &fd) == -EPERM ? 0 : 1;
}

CASE(a_program_that_has_confined_itself_is_asked_for_nothing)
{
    assert_int_equal(status_of_child(NULL, begin_confined), 0);
}

static bool can_move(void)
{
    struct fl_range to = map(fl_page.huge);
    int fd, rc = fl_sys_linux.move_begin(to, &fd);

    if (rc == 0) {
        fl_sys_linux.move_end(fd, to);
    }
    return rc != -ENOSYS && rc != -EPERM;
}

int main(void)
{
    fl_sys_boot();
    if (fl_page.huge != MIB(2) || !can_move()) {
        printf("SKIP test_sys_move: needs UFFDIO_MOVE (Linux 6.8) and huge pages of 2 MiB\n");
        return 77;
    }
    return RUN_CASES(.teardown = unmap_all);
}
