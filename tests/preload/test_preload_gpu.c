/* Under libfaultless.so a program that does not ask for GPUs has nothing of them; one that does
 * gets answers. */
#include "run.h"

#include <stdlib.h>
#include <sys/stat.h>

static const struct fl_run *run(const char *mode, const char *driver)
{
    static char entry[4096];

    snprintf(entry, sizeof entry, "FAULTLESS_GPU_DRIVER=%s", driver);
    return fl_preload_run(FL_ARGV("victim_gpu", mode), FL_ENV(entry));
}

static void nothing_is_loaded_unasked(void **state)
{
    (void)state;
    const struct fl_run *r = run("unused", FL_FAKE_CUDA);
    fl_run_assert_clean(r);
    assert_string_equal(r->out, "loaded 0\n");
}

static void a_device_is_opened_and_a_child_has_none(void **state)
{
    (void)state;
    const struct fl_run *r = run("opened", FL_FAKE_CUDA);
    fl_run_assert_clean(r);
    assert_string_equal(r->out, "loaded 1\n");
}

static void an_old_driver_is_none(void **state)
{
    (void)state;
    const struct fl_run *r = run("absent", FL_FAKE_CUDA_OLD);
    fl_run_assert_clean(r);
}

static void no_driver_is_an_answer_and_prints_nothing(void **state)
{
    (void)state;
    const struct fl_run *r = run("absent", "/nowhere/libcuda.so.1");
    fl_run_assert_clean(r);
    assert_string_equal(r->out, "loaded 0\n");
}

static void the_report_has_the_devices_that_were_used(void **state)
{
    char entry[4096];

    (void)state;
    const struct fl_run *r = run("counted", FL_FAKE_CUDA);
    fl_run_assert_clean(r);
    assert_non_null(strstr(r->stats, ", \"gpus\": [{\"gpu\": 0, \"held_bytes\": 8388608, "));
    assert_null(strstr(r->stats, "{\"gpu\": 1"));
    assert_int_equal(fl_run_stat(r, "requested_bytes"), 8 << 20);
    r = run("unused", FL_FAKE_CUDA);
    assert_null(strstr(r->stats, "gpus"));
    snprintf(entry, sizeof entry, "FAULTLESS_GPU_DRIVER=%s", FL_FAKE_CUDA);
    r = fl_preload_run(FL_ARGV("victim_gpu", "counted"), FL_ENV(entry, "FAULTLESS_STATS=table"));
    assert_non_null(strstr(r->err, ": GPU0 held_bytes 8388608\n"));
    assert_null(strstr(r->err, "GPU1"));
    r = fl_preload_run(FL_ARGV("victim_gpu", "counted"), FL_ENV(entry, "FAULTLESS_STATS=1"));
    assert_non_null(
        strstr(r->err, ": GPU0: 2 requests (50 % from its pools), at most 8.0 MiB held\n"));
}

static void prometheus_has_the_devices_that_were_used(void **state)
{
    char folder[] = "/tmp/fl-gpu-prom-XXXXXX", entry[4096], stats[96], shell[128];
    const char *path = stats + strlen("FAULTLESS_STATS=");
    char text[FL_RUN_TEXT] = "";

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chmod(folder, 0777), 0);
    snprintf(stats, sizeof stats, "FAULTLESS_STATS=%s/a.prom", folder);
    snprintf(entry, sizeof entry, "FAULTLESS_GPU_DRIVER=%s", FL_FAKE_CUDA);
    const struct fl_run *r = fl_preload_run(FL_ARGV("victim_gpu", "counted"), FL_ENV(entry, stats));
    assert_int_equal(r->exit_status, 0);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *held = strstr(text, "\nfaultless_gpu_held_bytes{");
    assert_non_null(held);
    assert_non_null(strstr(held, ",gpu=\"0\"} 8388608\n"));
    assert_null(strstr(text, ",gpu=\"1\""));
    snprintf(shell, sizeof shell, "rm -r %s", folder);
    assert_int_equal(system(shell), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_loaded_unasked),
        cmocka_unit_test(a_device_is_opened_and_a_child_has_none),
        cmocka_unit_test(an_old_driver_is_none),
        cmocka_unit_test(the_report_has_the_devices_that_were_used),
        cmocka_unit_test(prometheus_has_the_devices_that_were_used),
        cmocka_unit_test(no_driver_is_an_answer_and_prints_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
