/* FAULTLESS_NUMA=first-touch: pages are put under large blocks while the thread that touches them
 * waits. All goes well, and no thread waits for ever. */
#include "run.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE = 30, CAN_MOVE = 1 << 16 };

/* May this process have the kernel's own faults served, on a kernel that moves pages? */
static bool may_be_served(void)
{
    struct uffdio_api api = {.api = UFFD_API};
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    bool may = fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0 && (api.features & CAN_MOVE) != 0;

    close(fd);
    return may && fl_rung()[0] == '\0';
}

static const struct fl_run *run(const char *mode, const char *env)
{
    const struct fl_run *r = fl_run_how(&(struct fl_how){
        .argv = FL_ARGV("victim_first_touch", mode),
        /* what is new is populated where its touches are not served */
        .env = FL_ENV("FAULTLESS_NUMA=first-touch", "FAULTLESS_EAGER_MAX=0", env),
        .seconds = PATIENCE,
    });

    fl_run_assert_clean(r);
    return r;
}

static void goes_well(void **state)
{
    const struct fl_run *r = run(*state, "FAULTLESS_LOG=warn");

    if (may_be_served()) {
        assert_true(fl_run_stat(r, "lazy") > 0);
        assert_true(fl_run_stat(r, "move_bytes") > 0);
    }
}

static void the_victim_is_right_under_glibc(void **state)
{
    (void)state;
    fl_run_assert_clean(fl_plain_run(FL_ARGV("victim_first_touch", "in_parallel")));
    fl_run_assert_clean(fl_plain_run(FL_ARGV("victim_first_touch", "given_up_in_part")));
    fl_run_assert_clean(fl_plain_run(FL_ARGV("victim_first_touch", "in_a_child")));
}

static void with_all_maps_in_use(void **state)
{
    (void)state;
    (void)run("without_maps_to_spare", "FAULTLESS_STOCK=2M");
}

/* There large blocks go out unpopulated by themselves, for the kernel to place. */
static bool has_several_nodes(void)
{
    return access("/sys/devices/system/node/node1", F_OK) == 0;
}

static void features_that_are_off_stay_off(void **state)
{
    static const char *const off[] = {"FAULTLESS_DISABLE=uffd", "FAULTLESS_DISABLE=move",
                                      "FAULTLESS_DISABLE=stock", "FAULTLESS_DISABLE=numa",
                                      "FAULTLESS_DISABLE=worker"};
    (void)state;
    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++) {
        const struct fl_run *r = run("in_parallel", off[i]);
        assert_true(fl_run_stat(r, "lazy") == 0 ||
                    (has_several_nodes() && strstr(off[i], "numa") == NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_victim_is_right_under_glibc),
        FL_CASE(by_several_threads, goes_well, "in_parallel"),
        FL_CASE(by_system_calls, goes_well, "by_the_kernel"),
        FL_CASE(of_holes_in_what_is_there, goes_well, "given_up_in_part"),
        cmocka_unit_test(with_all_maps_in_use),
        FL_CASE(of_blocks_that_change_their_size, goes_well, "resized"),
        FL_CASE(in_children, goes_well, "in_a_child"),
        cmocka_unit_test(features_that_are_off_stay_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
