/* Nodes as sysfs has them: on drawn machines, on damaged ones, and where nothing can be read. */
#include "cases.h"
#include "unit/fake_sys.h"
#include "unit/numa_fixture.h"

static struct fl_topology t;
static struct fl_numa_scratch scratch;

static void assert_sane(void)
{
    uint64_t known = UINT64_MAX >> (FL_NODES - t.count);

    assert_in_range(t.count, 1, FL_NODES);
    assert_true(t.memory != 0 && t.cpus != 0 && ((t.memory | t.cpus) & ~known) == 0);
    for (unsigned i = 0; i < t.count; i++) {
        uint64_t seen = 0;
        assert_true(i == 0 || t.id[i - 1] < t.id[i]);
        assert_int_equal(t.distance[i][i], 10);
        assert_in_range(t.weight[i], 1, UINT8_MAX);
        for (int k = 0; k < __builtin_popcountll(t.memory); k++) {
            unsigned node = t.order[i][k];
            assert_true(k == 0 || t.distance[i][t.order[i][k - 1]] <= t.distance[i][node]);
            seen |= (uint64_t)1 << node;
        }
        assert_true(seen == t.memory);
    }
}

CASE(every_machine_is_read_soundly)
{
    for (size_t i = 0; i < sizeof drawn_all / sizeof drawn_all[0]; i++) {
        draw_and_read(drawn_all[i], &t);
        assert_sane();
    }
}

CASE(numbers_with_gaps_are_counted_without)
{
    static const uint16_t ids[] = {0, 2, 5};
    draw_and_read(&drawn_gaps, &t);
    assert_int_equal(t.count, 3);
    assert_memory_equal(t.id, ids, sizeof ids);
    assert_int_equal(t.memory, 7);
    assert_int_equal(fl_topology_find(&t, 5), 2);
    assert_int_equal(fl_topology_find(&t, 1), FL_NODES);
    assert_int_equal(t.distance[0][2], 30);
    assert_int_equal(set_of(&t, "1-5"), 6);
    struct fl_node_ids out, want = ids_of("2,5");
    fl_topology_ids(&t, 6, &out);
    assert_memory_equal(&out, &want, sizeof out);
}

CASE(nodes_without_cpus_and_without_memory_are_known)
{
    draw_and_read(&drawn_cxl, &t);
    assert_int_equal(t.cpus, 3);
    assert_int_equal(t.memory, 15);
    draw_and_read(&drawn_bare, &t);
    assert_int_equal(t.cpus, 7);
    assert_int_equal(t.memory, 5);
    assert_int_equal(fl_topology_nearest(&t, 1, t.memory), 2);
}

CASE(the_nearest_comes_first_and_ties_go_upward)
{
    static const uint8_t from_5[] = {5, 6, 7, 4, 0, 1, 2, 3}, from_2[] = {2, 3, 0, 1, 4, 5, 6, 7};
    draw_and_read(&drawn_snc, &t);
    assert_memory_equal(t.order[5], from_5, sizeof from_5);
    assert_memory_equal(t.order[2], from_2, sizeof from_2);
    assert_int_equal(fl_topology_nearest(&t, 5, 1 << 3 | 1 << 1), 1);
    assert_int_equal(fl_topology_nearest(&t, 5, 0), FL_NODES);
}

CASE(what_cannot_be_read_is_one_node)
{
    static const struct drawn_machine table[] = {
        {.name = "nothing"},
        {.name = "nonsense", .online = "many\n", .memory = "x", .cpus = "-"},
        {.name = "empty", .online = "\n", .memory = "\n", .cpus = "\n"},
        {.name = "past the end", .online = "1024-4000000000\n"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        draw_and_read(&table[i], &t);
        assert_sane();
        assert_int_equal(t.count, 1);
        assert_int_equal(t.id[0], 0);
        assert_int_equal(t.memory, 1);
        assert_int_equal(t.cpus, 1);
    }
}

CASE(a_half_readable_machine_has_plain_distances)
{
    static const char *const distances[] = {NULL,     "",         "10\n",    "10 21 21\n",
                                            "10 x\n", "10 256\n", "21 10\n", "10 9\n"};
    for (size_t i = 0; i < sizeof distances / sizeof distances[0]; i++) {
        struct drawn_machine m = drawn_two;
        m.node[0].distance = distances[i];
        m.memory = m.cpus = NULL;
        draw_and_read(&m, &t);
        assert_sane();
        assert_int_equal(t.count, 2);
        assert_int_equal(t.memory, 3);
        assert_int_equal(t.cpus, 3);
        assert_int_equal(t.distance[0][1], 20);
        assert_int_equal(t.distance[1][0], 21);
    }
}

static const char *many_path;

static int many_read_file(const char *path, char *buf, size_t size)
{
    const char *tail = strstr(path, "/distance");

    if (strstr(path, "/online") != NULL) {
        snprintf(buf, size, "1-70\n");
    } else if (tail != NULL) {
        struct fl_text line = fl_text_on(buf, size);
        uint64_t id;
        many_path = strstr(path, "node/node");
        assert_true(fl_parse_after(many_path, "node/node", &id));
        for (uint64_t i = 1; i <= 70; i++) {
            fl_text_u64(&line, i == id ? 10 : 11 + i);
            fl_text_str(&line, " ");
        }
    } else {
        buf[0] = '\0';
        return -1;
    }
    return 0;
}

CASE(more_nodes_than_there_is_room_for_are_left_out)
{
    struct fl_node_ids ids = ids_of("1,64,65");
    fl_sys.read_file = many_read_file;
    fl_topology_read(&t, "/drawn", &scratch);
    assert_sane();
    assert_int_equal(t.count, FL_NODES);
    assert_int_equal(t.left_out, 6);
    assert_int_equal(t.id[63], 64);
    assert_int_equal(t.distance[0][63], 75);
    assert_true(fl_topology_set(&t, &ids) == ((uint64_t)1 << 63 | 1));
    assert_int_equal(fl_topology_find(&t, 65), FL_NODES);
}

static int long_read_file(const char *path, char *buf, size_t size)
{
    struct fl_text line = fl_text_on(buf, size);

    (void)path;
    for (uint64_t i = 0; i < FL_CPU_IDS; i += 2) {
        fl_text_u64(&line, i);
        fl_text_str(&line, ",");
    }
    return 0;
}

/* 8,191 letters end amid a number, which is none then. */
CASE(a_list_that_was_cut_has_lost_its_last_number)
{
    struct fl_cpu_ids cpus;
    unsigned n = 0, last = 0;
    draw_and_read(&drawn_one, &t);
    fl_sys.read_file = long_read_file;
    assert_true(fl_topology_cpus(&t, 0, "/drawn", &scratch, &cpus));
    for (unsigned i = 0; i < FL_CPU_IDS; i++) {
        if ((cpus.word[i / 64] >> (i % 64) & 1) != 0) {
            n++;
            last = i;
        }
    }
    assert_int_equal(last, 2 * (n - 1)); /* none but those of the list */
    assert_in_range(n, 1500, 2000);
}

CASE(cpus_of_a_node_are_read)
{
    struct fl_cpu_ids cpus, none = {{0}};
    draw_and_read(&drawn_four, &t);
    assert_true(fl_topology_cpus(&t, 1, "/drawn", &scratch, &cpus));
    assert_int_equal(cpus.word[0], 1 << 1 | 1 << 5);
    draw_and_read(&drawn_cxl, &t);
    assert_true(fl_topology_cpus(&t, 2, "/drawn", &scratch, &cpus));
    assert_memory_equal(&cpus, &none, sizeof cpus);
    draw_and_read(&(struct drawn_machine){.name = "nothing"}, &t);
    assert_false(fl_topology_cpus(&t, 0, "/drawn", &scratch, &cpus));
    assert_memory_equal(&cpus, &none, sizeof cpus);
}

CASE(weights_are_those_of_sysfs_or_one)
{
    struct drawn_machine m = drawn_two;
    draw_and_read(&drawn_two, &t);
    assert_int_equal(t.weight[0], 3);
    assert_int_equal(t.weight[1], 1);
    m.node[0].weight = 0;
    m.node[1].weight = 256;
    draw(&m);
    fl_topology_read_weights(&t, "/drawn", &scratch);
    assert_int_equal(t.weight[0], 1);
    assert_int_equal(t.weight[1], 1);
}

/* Of 1 GiB 66 MiB are the kernel's; of page cache the inactive half is there, and half of the
 * active. */
CASE(room_is_what_is_free_and_not_kept)
{
    draw_and_read(&drawn_two, &t);
    assert_int_equal(fl_topology_room(&t, 1, "/drawn", &scratch), (512u + 64 + 32 - 66) << 20);
    assert_int_equal(fl_topology_room(&t, 2, "/drawn", &scratch), (100u - 66) << 20);
    assert_int_equal(fl_topology_room(&t, 3, "/drawn", &scratch), (542u + 34) << 20);
    assert_int_equal(fl_topology_room(&t, 0, "/drawn", &scratch), 0);
    draw_and_read(&drawn_four, &t);
    assert_int_equal(fl_topology_room(&t, 1, "/drawn", &scratch), (uint64_t)(30000 - 64 - 128)
                                                                      << 20);
    draw(&(struct drawn_machine){.name = "nothing"});
    assert_true(fl_topology_room(&t, 1, "/drawn", &scratch) == UINT64_MAX);
}

CASES_MAIN(.setup = fake_install)
