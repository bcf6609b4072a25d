/* The parts of faultstat record that need no kernel: the order of records, mappings over mappings,
 * kinds, sums over time, the prediction's arithmetic. */
#include "faultstat/record/demangle.h"
#include "faultstat/record/intern.h"
#include "faultstat/record/kind.h"
#include "faultstat/record/maps.h"
#include "faultstat/record/points.h"
#include "faultstat/record/predict.h"
#include "faultstat/record/queue.h"
#include "faultstat/record/series.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

static char order[16];

static void note_order(void *arg, const void *record, size_t len)
{
    (void)arg;
    strncat(order, record, len);
}

static void records_come_in_the_order_of_their_times(void **state)
{
    (void)state;
    struct fl_queue queue = {0};
    fl_queue_add(&queue, 30, "c", 1);
    fl_queue_add(&queue, 10, "a", 1);
    fl_queue_add(&queue, 20, "b", 1);
    fl_queue_add(&queue, 20, "B", 1); /* of one time: as they came */
    fl_queue_flush(&queue, 30, note_order, NULL);
    assert_string_equal(order, "abB");
    fl_queue_add(&queue, 25, "x", 1);
    fl_queue_flush(&queue, UINT64_MAX, note_order, NULL);
    assert_string_equal(order, "abBxc");
    fl_queue_flush(&queue, UINT64_MAX, note_order, NULL);
    assert_string_equal(order, "abBxc");
    fl_queue_clear(&queue);
}

static struct fl_map range(uint64_t start, uint64_t end, uint32_t module)
{
    return (struct fl_map){
        .start = start, .end = end, .whole = end - start, .offset = start, .module = module};
}

static uint32_t module_at(const struct fl_process *process, uint64_t addr)
{
    const struct fl_map *map = fl_process_find(process, addr);
    return map != NULL ? map->module : 0;
}

static void a_new_mapping_lies_over_the_old_ones(void **state)
{
    (void)state;
    struct fl_processes all = {0};
    struct fl_process *p = fl_processes_get(&all, 1);
    const struct fl_map made[] = {range(100, 200, 1), range(300, 400, 2), range(150, 350, 3),
                                  range(10, 20, 4), range(220, 230, 5)};
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        assert_int_equal(fl_process_map(p, &made[i]), 0);
    }
    static const struct {
        uint64_t addr;
        uint32_t module;
    } want[] = {{9, 0},   {10, 4},  {20, 0},  {100, 1}, {149, 1}, {150, 3}, {219, 3},
                {220, 5}, {229, 5}, {230, 3}, {349, 3}, {350, 2}, {399, 2}, {400, 0}};
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        assert_int_equal(module_at(p, want[i].addr), want[i].module);
    }
    const struct fl_map *right = fl_process_find(p, 350);
    assert_int_equal(right->offset, 350); /* the file's offset moved with the start */
    assert_int_equal(right->whole, 100);  /* what was mapped, not what is left */
    for (size_t i = 1; i < p->count; i++) {
        assert_true(p->map[i - 1].end <= p->map[i].start); /* P1 */
    }
    fl_processes_clear(&all);
}

static void a_child_has_its_parents_mappings_until_it_runs_a_program(void **state)
{
    (void)state;
    struct fl_processes all = {0};
    struct fl_map map = range(100, 200, 7);
    assert_int_equal(fl_process_map(fl_processes_get(&all, 1), &map), 0);
    fl_processes_fork(&all, 1, 2);
    fl_processes_fork(&all, 1, 1); /* a thread */
    assert_int_equal(module_at(fl_processes_get(&all, 2), 150), 7);
    assert_true(fl_processes_get(&all, 2)->has_forked);
    fl_process_exec(fl_processes_get(&all, 2));
    assert_int_equal(module_at(fl_processes_get(&all, 2), 150), 0);
    assert_int_equal(module_at(fl_processes_get(&all, 1), 150), 7);
    fl_processes_clear(&all);
}

static void a_stack_grows_downward(void **state)
{
    (void)state;
    struct fl_processes all = {0};
    struct fl_process *p = fl_processes_get(&all, 1);
    struct fl_map stack = range(UINT64_C(1) << 40, (UINT64_C(1) << 40) + 4096, 9);
    assert_int_equal(fl_process_map(p, &stack), 0);
    assert_null(fl_process_find(p, stack.start - 4096));
    stack.kind = FL_MAP_STACK;
    assert_int_equal(fl_process_map(p, &stack), 0);
    assert_non_null(fl_process_find(p, stack.start - 4096));
    assert_null(fl_process_find(p, stack.start - (64 << 20)));
    fl_processes_clear(&all);
}

static void a_mappings_name_says_what_it_is(void **state)
{
    (void)state;
    assert_int_equal(fl_map_kind_of("//anon", MAP_PRIVATE), FL_MAP_ANON);
    assert_int_equal(fl_map_kind_of("", MAP_PRIVATE), FL_MAP_ANON);
    assert_int_equal(fl_map_kind_of("[heap]", MAP_PRIVATE), FL_MAP_HEAP);
    assert_int_equal(fl_map_kind_of("[stack]", MAP_PRIVATE), FL_MAP_STACK);
    assert_int_equal(fl_map_kind_of("/usr/lib/x.so", MAP_PRIVATE), FL_MAP_FILE);
    assert_int_equal(fl_map_kind_of("/dev/zero (deleted)", MAP_SHARED), FL_MAP_SHARED);
    assert_int_equal(fl_map_kind_of("/memfd:x (deleted)", MAP_SHARED), FL_MAP_SHARED);
    assert_int_equal(fl_map_kind_of("//anon", MAP_SHARED), FL_MAP_SHARED);
}

static void a_kind_follows_from_what_is_known(void **state)
{
    (void)state;
    struct fl_map map = {.kind = FL_MAP_ANON, .whole = 1 << 20};
    struct fl_facts facts = {.map = &map, .page_size = 4096, .base_page = 4096};
    assert_int_equal(fl_kind_of(&facts), FL_KIND_ANON);
    facts.page_size = 2 << 20;
    assert_int_equal(fl_kind_of(&facts), FL_KIND_HUGE);
    facts.page_size = 0; /* a kernel that does not say */
    assert_int_equal(fl_kind_of(&facts), FL_KIND_ANON);
    facts.was_present = true;
    assert_int_equal(fl_kind_of(&facts), FL_KIND_COPY);
    facts.is_major = true;
    assert_int_equal(fl_kind_of(&facts), FL_KIND_UFFD);
    facts.may_swap = true;
    assert_int_equal(fl_kind_of(&facts), FL_KIND_SWAP);
    map.kind = FL_MAP_FILE;
    facts.was_present = false;
    assert_int_equal(fl_kind_of(&facts), FL_KIND_FILE);
    facts.is_copied = true;
    assert_int_equal(fl_kind_of(&facts), FL_KIND_COPY);
    map.kind = FL_MAP_SHARED;
    assert_int_equal(fl_kind_of(&facts), FL_KIND_SHARED);
    facts.map = NULL;
    assert_int_equal(fl_kind_of(&facts), FL_KIND_OTHER);
}

static void equal_keys_have_one_number(void **state)
{
    (void)state;
    struct fl_intern table = {0};
    for (uint32_t i = 0; i < 5000; i++) {
        assert_int_equal(fl_intern(&table, &i, sizeof(i)), i);
    }
    for (uint32_t i = 0; i < 5000; i++) {
        size_t len;
        assert_int_equal(fl_intern(&table, &i, sizeof(i)), i);
        assert_memory_equal(fl_intern_key(&table, i, &len), &i, sizeof(i));
        assert_int_equal(len, sizeof(i));
    }
    assert_int_equal(fl_intern(&table, "ab", 2), 5000);
    assert_int_equal(fl_intern(&table, "ab", 1), 5001); /* a prefix is another key */
    fl_intern_clear(&table);
}

static void time_past_the_end_makes_buckets_wider(void **state)
{
    (void)state;
    static struct fl_series series;
    fl_series_start(&series, 1000);
    uint64_t width = series.width_ns;
    for (uint64_t i = 0; i < FL_BUCKETS; i++) {
        fl_series_at(&series, 1000 + i * width)->faults += 1;
    }
    fl_series_at(&series, 1000 + 3 * width)->rss = 77;
    fl_series_at(&series, 1000 + 5 * FL_BUCKETS * width)->faults += 1;
    assert_int_equal(series.width_ns, 8 * width);
    double sum = 0;
    for (size_t i = 0; i < series.count; i++) {
        sum += series.bucket[i].faults;
    }
    assert_int_equal((int)sum, FL_BUCKETS + 1);
    assert_int_equal(series.bucket[0].rss, 77);
    assert_int_equal((int)fl_series_at(&series, 0)->faults, 8); /* before the start: the first */
}

static void points_are_thinned_evenly(void **state)
{
    (void)state;
    static struct fl_points points;
    for (uint64_t i = 0; i < 10 * FL_POINTS_MOST; i++) {
        fl_points_add(&points, (struct fl_point){.time_ns = i});
    }
    assert_true(points.count > FL_POINTS_MOST / 2 && points.count <= FL_POINTS_MOST);
    for (size_t i = 0; i < points.count; i++) {
        assert_int_equal(points.point[i].time_ns, i * points.stride);
    }
}

static void a_step_is_shorter_by_the_faults_it_does_not_take(void **state)
{
    (void)state;
    struct fl_prediction_input in = {.has_steps = true,
                                     .wall_ms = 200,
                                     .cpu_ms = 110,
                                     .recording_ms = 10,
                                     .avoidable = 1000,
                                     .avoidable_ms = 40,
                                     .pages = 1000,
                                     .peak_pages = 900};
    struct fl_prediction p = fl_predict(&in);
    assert_int_equal((int)(p.bare_cpu_ms + 0.5), 100);
    assert_int_equal((int)(p.cpu_ms + 0.5), 60);
    assert_int_equal((int)(p.wall_ms * 100 / p.bare_wall_ms + 0.5), 60); /* in proportion */
    assert_int_equal((int)p.faults, 1000);
    in.has_steps = false; /* nine tenths are the first touch, which nothing saves */
    p = fl_predict(&in);
    assert_int_equal((int)(p.saved_ms + 0.5), 4);
    assert_int_equal((int)(p.faults + 0.5), 100);
    in.has_steps = true;
    in.cost_ms = 50; /* 10 of them the recording's: what is left is 1.2 times what was reckoned */
    in.sys_ms = 70;
    assert_int_equal((int)(fl_predict(&in).saved_ms + 0.5), 48);
    in.sys_ms = 100; /* so much is other calls */
    assert_int_equal((int)(fl_predict(&in).saved_ms + 0.5), 56);
    in.spread = 3; /* unless the calibration saw as much */
    assert_int_equal((int)(fl_predict(&in).saved_ms + 0.5), 72);
    in.sys_ms = 20;
    assert_int_equal((int)(fl_predict(&in).saved_ms + 0.5), 40);
    in.avoidable_ms = 1e9; /* never below nothing */
    assert_true(fl_predict(&in).cpu_ms > 0);
}

static void names_of_functions_are_short(void **state)
{
    (void)state;
    assert_string_equal(fl_demangle("plain_c"), "plain_c");
    const char *name = fl_demangle("_ZN2at6native5zero_ERNS_6TensorE");
    if (strncmp(name, "_Z", 2) != 0) { /* without the C++ runtime a name stays as it is */
        assert_string_equal(name, "at::native::zero_");
        assert_string_equal(fl_demangle("_ZNSt6vectorIiSaIiEE9push_backEOi"),
                            "std::vector::push_back");
        assert_string_equal(fl_demangle("_ZN1AclEv"), "A::operator()");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_in_the_order_of_their_times),
        cmocka_unit_test(a_new_mapping_lies_over_the_old_ones),
        cmocka_unit_test(a_child_has_its_parents_mappings_until_it_runs_a_program),
        cmocka_unit_test(a_stack_grows_downward),
        cmocka_unit_test(a_mappings_name_says_what_it_is),
        cmocka_unit_test(a_kind_follows_from_what_is_known),
        cmocka_unit_test(equal_keys_have_one_number),
        cmocka_unit_test(time_past_the_end_makes_buckets_wider),
        cmocka_unit_test(points_are_thinned_evenly),
        cmocka_unit_test(a_step_is_shorter_by_the_faults_it_does_not_take),
        cmocka_unit_test(names_of_functions_are_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
