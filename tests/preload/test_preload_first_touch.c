/* FAULTLESS_NUMA=first-touch: pages are put under large blocks while the thread that touches them
 * waits. All goes well, and no thread waits for ever. */
#include "run.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

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
    const struct fl_run *r =
        FL_CLEAN(FL_ARGV("victim_first_touch",
                         mode), /* what is new is populated where its touches are not served */
                 .env = FL_ENV("FAULTLESS_NUMA=first-touch", "FAULTLESS_EAGER_MAX=0", env),
                 .seconds = PATIENCE);
    return r;
}

static void goes_well(const char *mode)
{
    const struct fl_run *r = run(mode, "FAULTLESS_LOG=warn");

    if (may_be_served()) {
        assert_true(fl_run_stat(r, "lazy") > 0);
        assert_true(fl_run_stat(r, "move_bytes") > 0);
    }
}

/* There large blocks go out unpopulated by themselves, for the kernel to place. */
static bool has_several_nodes(void)
{
    return access("/sys/devices/system/node/node1", F_OK) == 0;
}

CASE(features_that_are_off_stay_off)
{
    static const char *const off[] = {"FAULTLESS_DISABLE=uffd", "FAULTLESS_DISABLE=move",
                                      "FAULTLESS_DISABLE=stock", "FAULTLESS_DISABLE=numa",
                                      "FAULTLESS_DISABLE=worker"};
    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++) {
        const struct fl_run *r = run("in_parallel", off[i]);
        assert_true(fl_run_stat(r, "lazy") == 0 ||
                    (has_several_nodes() && strstr(off[i], "numa") == NULL));
    }
}

CASE_IS(the_victim_is_right_under_glibc,
        fl_plain_modes("victim_first_touch",
                       FL_ARGV("in_parallel", "given_up_in_part", "in_a_child")))
CASE_IS(with_all_maps_in_use, run("without_maps_to_spare", "FAULTLESS_STOCK=2M"))
CASE_IS(by_several_threads, goes_well("in_parallel"))
CASE_IS(by_system_calls, goes_well("by_the_kernel"))
CASE_IS(of_holes_in_what_is_there, goes_well("given_up_in_part"))
CASE_IS(of_blocks_that_change_their_size, goes_well("resized"))
CASE_IS(in_children, goes_well("in_a_child"))

CASES_MAIN()
