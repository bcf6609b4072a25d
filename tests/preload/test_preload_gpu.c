/* Under libfaultless.so a program that does not ask for GPUs has nothing of them; one that does
 * gets answers. */
#include "run.h"

#define FAKE "FAULTLESS_GPU_DRIVER=" FL_FAKE_CUDA

static void says(const char *mode, const char *driver, const char *out)
{
    assert_string_equal(FL_CLEAN(FL_ARGV("victim_gpu", mode), FL_ENV(driver))->out, out);
}

static const struct fl_run *counted(const char *stats)
{
    return FL_RUN(FL_ARGV("victim_gpu", "counted"), FL_ENV(FAKE, stats));
}

CASE(the_report_has_the_devices_that_were_used)
{
    const struct fl_run *r = fl_run_assert_clean(counted(NULL));
    assert_says(r->stats, ", \"gpus\": [{\"gpu\": 0, \"held_bytes\": 8388608, ");
    assert_null(strstr(r->stats, "{\"gpu\": 1"));
    assert_int_equal(fl_run_stat(r, "requested_bytes"), 8 << 20);
    r = FL_RUN(FL_ARGV("victim_gpu", "unused"), FL_ENV(FAKE));
    assert_null(strstr(r->stats, "gpus"));
    r = counted("FAULTLESS_STATS=table");
    assert_says(r->err, ": GPU0 held_bytes 8388608\n");
    assert_null(strstr(r->err, "GPU1"));
    r = counted("FAULTLESS_STATS=1");
    assert_says(r->err, ": GPU0: 2 requests (50 % from its pools), at most 8.0 MiB held\n");
}

CASE(prometheus_has_the_devices_that_were_used)
{
    const char *folder = fl_folder();

    assert_int_equal(counted(text_as("FAULTLESS_STATS=%s/a.prom", folder))->exit_status, 0);
    const char *text = fl_text_of(folder, "a.prom");
    const char *held = strstr(text, "\nfaultless_gpu_held_bytes{");
    assert_non_null(held);
    assert_says(held, ",gpu=\"0\"} 8388608\n");
    assert_null(strstr(text, ",gpu=\"1\""));
}

CASE_IS(nothing_is_loaded_unasked, says("unused", FAKE, "loaded 0\n"))
CASE_IS(a_device_is_opened_and_a_child_has_none, says("opened", FAKE, "loaded 1\n"))
CASE_IS(an_old_driver_is_none,
        says("absent", "FAULTLESS_GPU_DRIVER=" FL_FAKE_CUDA_OLD, "loaded 1\n"))
CASE_IS(no_driver_is_an_answer_and_prints_nothing,
        says("absent", "FAULTLESS_GPU_DRIVER=/nowhere/libcuda.so.1", "loaded 0\n"))

CASES_MAIN()
