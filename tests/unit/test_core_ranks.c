/* How many processes share the host: the user's word, then the launchers'. */
#include "core/core.h"
#include "cases.h"
#include "unit/fake_sys.h"

#include <string.h>

static struct fl_options o;

static int each(void **state)
{
    (void)state;
    fake_install();
    return 0;
}

/* At most three entries, of which the later may be NULL. */
static unsigned ranks_of(const char *a, const char *b, const char *c)
{
    const char *entries[] = {a, b, c, NULL};
    char *env[4];

    memcpy(env, entries, sizeof env); /* environ is not const by tradition */
    fl_options_read(&o, env);
    return fl_ranks(&o, env);
}

CASE(alone_unless_told_otherwise)
{
    assert_int_equal(ranks_of(NULL, NULL, NULL), 1);
    assert_int_equal(ranks_of("PATH=/bin", "OMPI_COMM_WORLD_SIZE=64", "WORLD_SIZE=64"), 1);
    fl_options_read(&o, NULL);
    assert_int_equal(fl_ranks(&o, NULL), 1); /* AT_SECURE */
}

CASE(each_launcher_is_understood)
{
    static const struct {
        const char *entry;
        unsigned ranks;
    } table[] = {
        {"OMPI_COMM_WORLD_LOCAL_SIZE=4", 4},
        {"MPI_LOCALNRANKS=3", 3},
        {"MV2_COMM_WORLD_LOCAL_SIZE=5", 5},
        {"PMI_LOCAL_SIZE=12", 12},
        {"PALS_LOCAL_SIZE=6", 6},
        {"LOCAL_WORLD_SIZE=8", 8},
        {"LOCAL_WORLD_SIZE=1", 1},
        {"LOCAL_WORLD_SIZE=4096", 4096},
        {"SLURM_NTASKS_PER_NODE=4", 4},
        {"SLURM_NTASKS_PER_NODE=4(x2)", 4},
        {"SLURM_STEP_TASKS_PER_NODE=7", 7},
        {"SLURM_STEP_TASKS_PER_NODE=2(x3),1", 2},
        {"SLURM_STEP_TASKS_PER_NODE=2(x3),5(x16),4", 5},
        {"SLURM_STEP_TASKS_PER_NODE=3,9", 9},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_int_equal(ranks_of("PATH=/bin", table[i].entry, "HOME=/"), table[i].ranks);
    }
}

/* They are not ours: no line, no count. */
CASE(what_is_not_understood_is_ignored)
{
    static const char *const table[] = {
        "LOCAL_WORLD_SIZE",         "LOCAL_WORLD_SIZE=",
        "LOCAL_WORLD_SIZE=0",       "LOCAL_WORLD_SIZE=-4",
        "LOCAL_WORLD_SIZE=+4",      "LOCAL_WORLD_SIZE= 4",
        "LOCAL_WORLD_SIZE=4 ",      "LOCAL_WORLD_SIZE=4x",
        "LOCAL_WORLD_SIZE=0x4",     "LOCAL_WORLD_SIZE=4.0",
        "LOCAL_WORLD_SIZE=4K",      "LOCAL_WORLD_SIZE=4097",
        "LOCAL_WORLD_SIZE=$N",      "LOCAL_WORLD_SIZE=4294967297",
        "local_world_size=4",       "XLOCAL_WORLD_SIZE=4",
        "LOCAL_WORLD_SIZES=4",      "LOCAL_WORLD_SIZE=99999999999999999999999",
        "SLURM_NTASKS_PER_NODE=4(", "SLURM_NTASKS_PER_NODE=4(x2",
        "SLURM_NTASKS_PER_NODE=4,", "SLURM_NTASKS_PER_NODE=4(x)",
        "SLURM_NTASKS_PER_NODE=,4", "SLURM_NTASKS_PER_NODE=4(2)",
        "SLURM_NTASKS_PER_NODE=",   "SLURM_NTASKS_PER_NODE=4(x2)3",
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_int_equal(ranks_of(table[i], NULL, NULL), 1);
        assert_int_equal(ranks_of(table[i], "MPI_LOCALNRANKS=3", NULL), 3);
        assert_int_equal(o.nbad, 0);
    }
    assert_string_equal(fake.said, "");
}

CASE(of_several_launchers_the_greatest_counts)
{
    assert_int_equal(ranks_of("OMPI_COMM_WORLD_LOCAL_SIZE=1", "LOCAL_WORLD_SIZE=8", NULL), 8);
    assert_int_equal(ranks_of("LOCAL_WORLD_SIZE=8", "OMPI_COMM_WORLD_LOCAL_SIZE=1", NULL), 8);
    assert_int_equal(ranks_of("SLURM_STEP_TASKS_PER_NODE=1(x2)", "MPI_LOCALNRANKS=4", NULL), 4);
    assert_int_equal(ranks_of("SLURM_STEP_TASKS_PER_NODE=4", "LOCAL_WORLD_SIZE=2", NULL), 4);
}

/* What the job asked for is the last resort: it may run something else. */
CASE(what_slurm_was_asked_for_counts_last)
{
    assert_int_equal(ranks_of("SLURM_NTASKS_PER_NODE=64", "SLURM_STEP_TASKS_PER_NODE=1", NULL), 1);
    assert_int_equal(ranks_of("LOCAL_WORLD_SIZE=2", "SLURM_NTASKS_PER_NODE=64", NULL), 2);
    assert_int_equal(ranks_of("SLURM_STEP_TASKS_PER_NODE=?", "SLURM_NTASKS_PER_NODE=4", NULL), 4);
    assert_int_equal(ranks_of("LOCAL_WORLD_SIZE=0", "SLURM_NTASKS_PER_NODE=4", NULL), 4);
}

CASE(the_user_knows_best)
{
    assert_int_equal(ranks_of("FAULTLESS_HOST_SHARE=2", NULL, NULL), 2);
    assert_int_equal(ranks_of("LOCAL_WORLD_SIZE=8", "FAULTLESS_HOST_SHARE=1", NULL), 1);
    assert_int_equal(ranks_of("LOCAL_WORLD_SIZE=8", "FAULTLESS_HOST_SHARE=4096", NULL), 4096);
    assert_int_equal(ranks_of("LOCAL_WORLD_SIZE=8", "FAULTLESS_HOST_SHARE=0", NULL), 8);
    assert_string_equal(fake.said, "");
    assert_int_equal(ranks_of("LOCAL_WORLD_SIZE=8", "FAULTLESS_HOST_SHARE=all", NULL), 8);
    assert_int_equal(o.nbad, 1);
    assert_string_equal(
        fake.said,
        "faultless: FAULTLESS_HOST_SHARE=all is not understood (a whole number of processes); "
        "using the default, automatic\n");
}

int main(void)
{
    return RUN_CASES(.setup = each);
}
