/* Under libfaultless.so a program that does not ask for GPUs has nothing of them; one that does
 * gets answers. */
#include "run.h"

#define FAKE "FAULTLESS_GPU_DRIVER=" FL_FAKE_CUDA

struct row {
    const char *mode, *driver, *out;
};

static void says(void **state)
{
    const struct row *row = *state;
    const struct fl_run *r = fl_preload_run(FL_ARGV("victim_gpu", row->mode), FL_ENV(row->driver));

    fl_run_assert_clean(r);
    assert_string_equal(r->out, row->out);
}

static const struct fl_run *counted(const char *stats)
{
    return fl_preload_run(FL_ARGV("victim_gpu", "counted"), FL_ENV(FAKE, stats));
}

static void the_report_has_the_devices_that_were_used(void **state)
{
    (void)state;
    const struct fl_run *r = counted(NULL);
    fl_run_assert_clean(r);
    assert_non_null(strstr(r->stats, ", \"gpus\": [{\"gpu\": 0, \"held_bytes\": 8388608, "));
    assert_null(strstr(r->stats, "{\"gpu\": 1"));
    assert_int_equal(fl_run_stat(r, "requested_bytes"), 8 << 20);
    r = fl_preload_run(FL_ARGV("victim_gpu", "unused"), FL_ENV(FAKE));
    assert_null(strstr(r->stats, "gpus"));
    r = counted("FAULTLESS_STATS=table");
    assert_non_null(strstr(r->err, ": GPU0 held_bytes 8388608\n"));
    assert_null(strstr(r->err, "GPU1"));
    r = counted("FAULTLESS_STATS=1");
    assert_non_null(
        strstr(r->err, ": GPU0: 2 requests (50 % from its pools), at most 8.0 MiB held\n"));
}

static void prometheus_has_the_devices_that_were_used(void **state)
{
    char stats[96];
    const char *folder = fl_folder();

    (void)state;
    snprintf(stats, sizeof stats, "FAULTLESS_STATS=%s/a.prom", folder);
    assert_int_equal(counted(stats)->exit_status, 0);
    const char *text = fl_text_of(folder, "a.prom");
    const char *held = strstr(text, "\nfaultless_gpu_held_bytes{");
    assert_non_null(held);
    assert_non_null(strstr(held, ",gpu=\"0\"} 8388608\n"));
    assert_null(strstr(text, ",gpu=\"1\""));
}

#define SAYS(name, ...) FL_CASE(name, says, (&(struct row){__VA_ARGS__}))

int main(void)
{
    const struct CMUnitTest tests[] = {
        SAYS(nothing_is_loaded_unasked, "unused", FAKE, "loaded 0\n"),
        SAYS(a_device_is_opened_and_a_child_has_none, "opened", FAKE, "loaded 1\n"),
        SAYS(an_old_driver_is_none, "absent", "FAULTLESS_GPU_DRIVER=" FL_FAKE_CUDA_OLD,
             "loaded 1\n"),
        SAYS(no_driver_is_an_answer_and_prints_nothing, "absent",
             "FAULTLESS_GPU_DRIVER=/nowhere/libcuda.so.1", "loaded 0\n"),
        cmocka_unit_test(the_report_has_the_devices_that_were_used),
        cmocka_unit_test(prometheus_has_the_devices_that_were_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
