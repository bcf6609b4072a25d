/* The parts of faultstat record that need no kernel: the order of records, mappings over mappings,
 * kinds, sums over time, the prediction's arithmetic. */
#include "cases.h"
#include "faultstat/record/demangle.h"
#include "faultstat/record/intern.h"
#include "faultstat/record/kind.h"
#include "faultstat/record/maps.h"
#include "faultstat/record/points.h"
#include "faultstat/record/predict.h"
#include "faultstat/record/queue.h"
#include "faultstat/record/series.h"

#include <math.h>
#include <sys/mman.h>

static char order[16];

static void note_order(void *arg, const void *record, size_t len)
{
    (void)arg;
    strncat(order, record, len);
}

CASE(records_come_in_the_order_of_their_times)
{
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

CASE(a_new_mapping_lies_over_the_old_ones)
{
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

CASE(a_child_has_its_parents_mappings_until_it_runs_a_program)
{
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

CASE(a_stack_grows_downward)
{
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

CASE(a_mappings_name_says_what_it_is)
{
    assert_int_equal(fl_map_kind_of("//anon", MAP_PRIVATE), FL_MAP_ANON);
    assert_int_equal(fl_map_kind_of("", MAP_PRIVATE), FL_MAP_ANON);
    assert_int_equal(fl_map_kind_of("[heap]", MAP_PRIVATE), FL_MAP_HEAP);
    assert_int_equal(fl_map_kind_of("[stack]", MAP_PRIVATE), FL_MAP_STACK);
    assert_int_equal(fl_map_kind_of("/usr/lib/x.so", MAP_PRIVATE), FL_MAP_FILE);
    assert_int_equal(fl_map_kind_of("/dev/zero (deleted)", MAP_SHARED), FL_MAP_SHARED);
    assert_int_equal(fl_map_kind_of("/memfd:x (deleted)", MAP_SHARED), FL_MAP_SHARED);
    assert_int_equal(fl_map_kind_of("//anon", MAP_SHARED), FL_MAP_SHARED);
}

CASE(a_kind_follows_from_what_is_known)
{
    struct fl_map map = {.kind = FL_MAP_ANON, .whole = 1 << 20};
    struct fl_facts facts = {.map = &map, .page_size = 4096, .base_page = 4096};
    assert_int_equal(fl_kind_of(&facts), FL_KIND_ANON);
    facts.page_size = 2 << 20;
    assert_int_equal(fl_kind_of(&facts), FL_KIND_HUGE);
    facts.page_size = 0; /* a kernel that does not say */
    assert_int_equal(fl_kind_of(&facts), FL_KIND_ANON);
    facts.is_no_page = true;
    assert_int_equal(fl_kind_of(&facts), FL_KIND_ZERO);
    facts.is_no_page = false;
    facts.was_present = true; /* the zero page was: nothing else is shared in this process */
    assert_int_equal(fl_kind_of(&facts), FL_KIND_ANON);
    facts.has_forked = true;
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

CASE(equal_keys_have_one_number)
{
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

CASE(time_past_the_end_makes_buckets_wider)
{
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

CASE(points_are_thinned_evenly)
{
    static struct fl_points points;
    for (uint64_t i = 0; i < 10 * FL_POINTS_MOST; i++) {
        fl_points_add(&points, (struct fl_point){.time_ns = i});
    }
    assert_true(points.count > FL_POINTS_MOST / 2 && points.count <= FL_POINTS_MOST);
    for (size_t i = 0; i < points.count; i++) {
        assert_int_equal(points.point[i].time_ns, i * points.stride);
    }
}

/* 100 ms of a step: 30 in user mode, 60 in the kernel for its faults, 10 for the recording. */
static struct fl_prediction_input usual_step(void)
{
    return (struct fl_prediction_input){.has_steps = true,
                                        .wall_ms = 200,
                                        .cpu_ms = 100,
                                        .user_ms = 30,
                                        .recording_ms = 10,
                                        .avoidable = 1000,
                                        .kernel_ms = 60,
                                        .pages = 1000,
                                        .base_pages = 1000,
                                        .peak_pages = 900};
}

static void assert_near(double value, double wanted)
{
    if (fabs(value - wanted) > 0.05) {
        fail_msg("%.2f, and not %.2f", value, wanted);
    }
}

CASE(what_is_left_of_a_step_is_its_user_time)
{
    struct fl_prediction_input in = usual_step();
    struct fl_prediction p = fl_predict(&in);
    assert_near(p.bare_cpu_ms, 90);
    assert_near(p.bare_wall_ms, 180);
    assert_near(p.cpu_ms, 30);
    assert_near(p.faults, 1000);
    assert_int_equal(p.doubt, FL_DOUBT_NONE);
    in.kernel_ms = 50; /* an error of the calibration is not the step's */
    assert_near(fl_predict(&in).cpu_ms, 30);
    in.kernel_ms = 75;
    assert_near(fl_predict(&in).cpu_ms, 30);
    in.trail_ms = 4; /* faults cost user time, too */
    in.walk_ms = 2;  /* half of it is taken */
    in.clear_ms = 3; /* and zeros have to be made */
    p = fl_predict(&in);
    assert_near(p.cpu_ms, 30 - 4 - 1 + 3);
    assert_true(p.low_ms < p.cpu_ms && p.cpu_ms < p.high_ms);
    in.kept_ms = 5; /* faults that stay */
    assert_near(fl_predict(&in).cpu_ms, 28 + 5);
    in.trail_ms = 1e9; /* never below nothing */
    assert_true(fl_predict(&in).cpu_ms >= 0);
    in.floor_ms = 20; /* nor below what its pages have to be written and read in */
    assert_near(fl_predict(&in).low_ms, 20);
    assert_true(fl_predict(&in).cpu_ms >= 20);
    in.floor_ms = 50; /* which is no more than it takes now */
    assert_near(fl_predict(&in).low_ms, 30);
}

CASE(a_program_without_steps_touches_its_peak_once)
{
    struct fl_prediction_input in = usual_step();
    in.has_steps = false; /* nine tenths are the first touch, which nothing saves */
    struct fl_prediction p = fl_predict(&in);
    assert_near(p.cpu_ms, 84);
    assert_near(p.faults, 100);
    in.peak_pages = 2000;
    assert_near(fl_predict(&in).cpu_ms, 90);
}

CASE(unexplained_system_time_makes_an_interval)
{
    struct fl_prediction_input in = usual_step();
    in.kernel_ms = 20; /* 40 more than that: dearer faults, or other calls */
    struct fl_prediction p = fl_predict(&in);
    assert_int_equal(p.doubt, FL_DOUBT_SYSTEM);
    assert_near(p.low_ms, 30);
    assert_near(p.high_ms, 70);
    in.kernel_ms = 5; /* no fault is more than four times dearer */
    p = fl_predict(&in);
    assert_near(p.low_ms, 70);
    assert_near(p.high_ms, 85);
    in.io_ms = 40; /* reading explains it */
    p = fl_predict(&in);
    assert_near(p.high_ms - p.low_ms, 15);
    in.kernel_ms = 20;
    in.knows_calls = true; /* the clock has seen that there were none */
    p = fl_predict(&in);
    assert_int_equal(p.doubt, FL_DOUBT_NONE);
    assert_near(p.cpu_ms, 30);
    in.call_ms = 12;
    assert_near(fl_predict(&in).cpu_ms, 42);
}

CASE(a_prediction_says_why_it_is_no_closer)
{
    struct fl_prediction_input in = usual_step();
    in.user_error_ms = 4; /* few ticks */
    struct fl_prediction p = fl_predict(&in);
    assert_int_equal(p.doubt, FL_DOUBT_SHORT);
    assert_near(p.low_ms, 22);
    assert_near(p.high_ms, 38);
    in.user_error_ms = 1;
    in.reach_ms = 7;
    assert_int_equal(fl_predict(&in).doubt, FL_DOUBT_COSTS);
    for (int i = FL_DOUBT_NONE + 1; i < FL_DOUBT_COUNT; i++) {
        assert_true(strlen(fl_doubt_text[i]) > 0);
    }
}

CASE(a_program_without_large_faults_stays_as_it_is)
{
    struct fl_prediction_input in = usual_step();
    in.kernel_ms = in.avoidable = in.pages = in.base_pages = 0;
    struct fl_prediction p = fl_predict(&in);
    assert_int_equal(p.doubt, FL_DOUBT_NONE);
    assert_near(p.cpu_ms, 90);
    in.knows_calls = true;
    assert_near(fl_predict(&in).cpu_ms, 90);
}

CASE(names_of_functions_are_short)
{
    assert_string_equal(fl_demangle("plain_c"), "plain_c");
    const char *name = fl_demangle("_ZN2at6native5zero_ERNS_6TensorE");
    if (strncmp(name, "_Z", 2) != 0) { /* without the C++ runtime a name stays as it is */
        assert_string_equal(name, "at::native::zero_");
        assert_string_equal(fl_demangle("_ZNSt6vectorIiSaIiEE9push_backEOi"),
                            "std::vector::push_back");
        assert_string_equal(fl_demangle("_ZN1AclEv"), "A::operator()");
    }
}

CASES_MAIN()
