/* faultplan, judged from outside: figures and offsets of tables whose layouts are known, pictures,
 * and what it says of files that are no tables. */
#include "cases.h"
#include "child.h"

static char path[] = "/tmp/faultplan-test-XXXXXX";

#define RUN(status, ...) fl_child_ends(status, ARGV(FL_FAULTPLAN, __VA_ARGS__), NULL)

CASE(it_packs_and_says_how_high)
{
    write_text(path, "id,lower,upper,size\na,0,2,10\nb,1,3,20\nc,2,4,10\n");
    RUN(0, "pack", path);
    assert_says(output.out, "buffers       3\n");
    assert_says(output.out, "lower bound   30 bytes");
    assert_says(output.out, "height        30 bytes\n");
    assert_says(output.out, "ratio         1.00000, height to lower bound\n");
}

CASE(columns_may_stand_in_any_order)
{
    write_text(path, "size,comment,upper,id,lower\r\n10,first,2,a,0\r\n20,second,3,b,1");
    RUN(0, "pack", "-o", "-", path);
    assert_true(strncmp(output.out, "id,lower,upper,size,offset,alignment\n", 37) == 0);
    assert_says(output.out, "a,0,2,10,");
    assert_says(output.out, "b,1,3,20,");
    assert_says(output.err, "height        30 bytes\n");
}

CASE(offsets_are_multiples_of_the_alignment)
{
    write_text(path, "id,lower,upper,size\n0,0,2,10\n1,0,2,10\n");
    RUN(0, "pack", "--align", "64K", "-o", "-", path);
    assert_says(output.out, ",0,65536\n");
    assert_says(output.out, ",65536,65536\n");
    assert_says(output.err, "lower bound   131072 bytes");
}

CASE(no_buffer_at_all_is_a_table_too)
{
    write_text(path, "id,lower,upper,size\n");
    RUN(0, "pack", path);
    assert_says(output.out, "height        0 bytes\n");
    RUN(0, "draw", path);
}

CASE(alignments_are_kept)
{
    write_text(path, "id,lower,upper,size,alignment\na,0,2,10,1\nb,0,2,10,64\nc,0,2,10,64\n");
    RUN(0, "pack", path);
    assert_says(output.out, "height        84 bytes\n");
    RUN(0, "pack", "--align", "128", path); /* sizes too */
    assert_says(output.out, "height        384 bytes\n");
}

CASE(pictures_show_each_buffer_with_or_without_offsets)
{
    write_text(path, "id,lower,upper,size\na,0,2,10\nb,1,3,20\nc,2,4,10\nd,2,2,10\n");
    RUN(0, "draw", path);
    assert_int_equal(count_of(output.out, "<rect class=\"buffer "), 3);
    assert_says(output.out, "height 30 bytes");
    assert_says(output.out, "prefers-color-scheme: dark");
    assert_says(output.out, "</svg>");
    write_text(path, "id,lower,upper,size,offset\na,0,2,10,100\nb,1,3,20,0\n");
    RUN(0, "draw", path);
    assert_int_equal(count_of(output.out, "<rect class=\"buffer "), 2);
    assert_says(output.out, "height 110 bytes");
}

CASE(what_is_no_table_gets_one_line)
{
    static const struct {
        const char *text, *said;
    } bad[] = {
        {"", ":1: the first line must name the columns"},
        {"a,0,2,10\n", ":1: the first line must name the columns"},
        {"id,lower,upper,size\na,0,2\n", ":2: there are fewer fields"},
        {"id,lower,upper,size\na,0,2,10\nb,1,3,-20\n", ":3: '-20' is no number (size)"},
        {"id,lower,upper,size\na,0,2x,10\n", ":2: '2x' is no number (upper)"},
        {"id,lower,upper,size\na,,2,10\n", ":2: '' is no number (lower)"},
        {"id,lower,upper,size\na,0,99999999999999999999,10\n", "is no number (upper)"},
        {"id,lower,upper,size\na,3,2,10\n", ":2: upper is before lower"},
        {"id,lower,upper,size\na,0,2,140737488355328\n", ":2: a size of 2^47"},
        {"id,lower,upper,size,alignment\na,0,2,1,48\n",
         ":2: an alignment that is no power of two up to"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_text(path, bad[i].text);
        RUN(125, "pack", path);
        assert_says(output.err, bad[i].said);
        assert_ptr_equal(strchr(output.err, '\n'), output.err + strlen(output.err) - 1);
        assert_string_equal(output.out, "");
    }
    RUN(125, "pack", "/nowhere/at/all.csv");
    assert_says(output.err, "/nowhere/at/all.csv: No such file");
    RUN(125, "pack", "/tmp");
}

CASE(wrong_options_are_refused)
{
    RUN(125, "pack");
    RUN(125, "pack", "--align", "3", path);
    RUN(125, "pack", "--align", "soon", path);
    RUN(125, "knit", path);
}

static void setup(void)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0 && close(fd) == 0);
}

static void teardown(void)
{
    assert_int_equal(unlink(path), 0);
}

CASES_MAIN(.group_setup = setup, .group_teardown = teardown)
