/* The Chrome trace and the table of what is allocated, told by tracks that belong to no thread:
 * when samples are taken, what is written, what happens when the file is slow or refuses. No
 * driver. */
#include "gpu/driver/driver.h"
#include "gpu/trace/trace.h"
#include "unit/cmocka_all.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char written[16 << 20];
static size_t written_len;
static int refusal;

static int replace_file(const char *path, const void *data, size_t len)
{
    (void)path;
    memcpy(written, data, len);
    written_len = len;
    written[len] = '\0';
    return 0;
}

static int append_file(const char *path, const char *text, size_t len)
{
    (void)path;
    if (refusal != 0) {
        return refusal;
    }
    assert_true(written_len + len < sizeof written);
    memcpy(written + written_len, text, len);
    written_len += len;
    written[written_len] = '\0';
    return 0;
}

static int each(void **state)
{
    (void)state;
    fl_sys = fl_sys_linux;
    fl_sys.replace_file = replace_file;
    fl_sys.append_file = append_file;
    refusal = 0;
    return 0;
}

static void live_blocks(void *owner, fl_gpu_live_fn *fn, void *arg)
{
    uint32_t *of = owner;

    fn(arg, &(struct fl_gpu_live){100, 512, of[1], false});
    fn(arg, &(struct fl_gpu_live){5, 256, 0, true});
    fn(arg, &(struct fl_gpu_live){4000, 4096, of[0], true});
    fn(arg, &(struct fl_gpu_live){4001, 4096, of[0], false});
}

static void the_table_has_a_line_for_each_block_by_its_tag(void **state)
{
    uint32_t tags[2];
    struct fl_gpu_track pool = {
        .device = 1, .owner = tags, .each = live_blocks, .kind = FL_GPU_TRACK_POOL};
    (void)state;
    assert_int_equal(fl_gpu_tag_now(), 0);
    fl_gpu_tag("conv1:weight");
    tags[0] = fl_gpu_tag_now();
    fl_gpu_tag("a \"b\"");
    tags[1] = fl_gpu_tag_now();
    fl_gpu_tag("conv1:weight");
    assert_int_equal(fl_gpu_tag_now(), tags[0]);
    fl_gpu_tag(NULL);
    assert_int_equal(fl_gpu_tag_now(), 0);
    assert_int_not_equal(tags[0], tags[1]);
    fl_gpu_track_open(&pool);
    assert_int_equal(fl_gpu_trace_csv("t"), 0);
    fl_gpu_track_close(&pool);
    assert_string_equal(
        written, "\"Attribute Name\",\"Requested Size\",\"Device\",\"Actual Size\",\"Reuse?\"\n"
                 "\"<unk>\",\"5\",\"1\",\"256\",\"1\"\n"
                 "\"a \"\"b\"\"\",\"100\",\"1\",\"512\",\"0\"\n"
                 "\"conv1:weight\",\"4001\",\"1\",\"4096\",\"0\"\n"
                 "\"conv1:weight\",\"4000\",\"1\",\"4096\",\"1\"\n");
    assert_int_equal(fl_gpu_trace_csv("t"), 0);
    assert_ptr_equal(strchr(written, '\n'), written + written_len - 1);
    refusal = -ENOSPC;
    fl_gpu_track_open(&pool);
    assert_int_equal(fl_gpu_trace_csv("t"), -ENOSPC);
    fl_gpu_track_close(&pool);
    assert_int_equal(fl_gpu_trace_csv(""), -EINVAL);
}

static void tags_are_cut_and_their_number_is_bounded(void **state)
{
    char name[80];
    unsigned known = 0;
    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    fl_gpu_tag(name);
    uint32_t first = fl_gpu_tag_now();
    name[70] = 'm'; /* behind the 63rd */
    fl_gpu_tag(name);
    assert_int_equal(fl_gpu_tag_now(), first);
    for (unsigned i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "tag %u", i);
        fl_gpu_tag(name);
        known += fl_gpu_tag_now() != 0;
    }
    assert_in_range(known, 3000, 3072);
    fl_gpu_tag("tag 0");
    assert_int_not_equal(fl_gpu_tag_now(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_table_has_a_line_for_each_block_by_its_tag, each),
        cmocka_unit_test_setup(tags_are_cut_and_their_number_is_bounded, each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
