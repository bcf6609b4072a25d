/* How many processes share the host: the user's word, then the launchers'. */
#include "cases.h"
#include "unit/options_fixture.h"

static unsigned ranks_of(const char *a, const char *b)
{
    READ("PATH=/bin", a, b);
    return fl_ranks(&o, environment);
}

CASE(alone_unless_told_otherwise)
{
    assert_int_equal(ranks_of(NULL, NULL), 1);
    assert_int_equal(ranks_of("OMPI_COMM_WORLD_SIZE=64", "WORLD_SIZE=64"), 1);
    fl_options_read(&o, NULL);
    assert_int_equal(fl_ranks(&o, NULL), 1); /* AT_SECURE */
}

CASE(what_is_told_counts)
{
    static const struct {
        const char *a, *b;
        unsigned ranks;
    } table[] = {
        /* each launcher is understood */
        {"OMPI_COMM_WORLD_LOCAL_SIZE=4", NULL, 4},
        {"MPI_LOCALNRANKS=3", NULL, 3},
        {"MV2_COMM_WORLD_LOCAL_SIZE=5", NULL, 5},
        {"PMI_LOCAL_SIZE=12", NULL, 12},
        {"PALS_LOCAL_SIZE=6", NULL, 6},
        {"LOCAL_WORLD_SIZE=8", NULL, 8},
        {"LOCAL_WORLD_SIZE=1", NULL, 1},
        {"LOCAL_WORLD_SIZE=4096", NULL, 4096},
        {"SLURM_NTASKS_PER_NODE=4", NULL, 4},
        {"SLURM_NTASKS_PER_NODE=4(x2)", NULL, 4},
        {"SLURM_STEP_TASKS_PER_NODE=7", NULL, 7},
        {"SLURM_STEP_TASKS_PER_NODE=2(x3),1", NULL, 2},
        {"SLURM_STEP_TASKS_PER_NODE=2(x3),5(x16),4", NULL, 5},
        {"SLURM_STEP_TASKS_PER_NODE=3,9", NULL, 9},
        /* of several the greatest counts */
        {"OMPI_COMM_WORLD_LOCAL_SIZE=1", "LOCAL_WORLD_SIZE=8", 8},
        {"LOCAL_WORLD_SIZE=8", "OMPI_COMM_WORLD_LOCAL_SIZE=1", 8},
        {"SLURM_STEP_TASKS_PER_NODE=1(x2)", "MPI_LOCALNRANKS=4", 4},
        {"SLURM_STEP_TASKS_PER_NODE=4", "LOCAL_WORLD_SIZE=2", 4},
        /* what the job asked for is the last resort: it may run something else */
        {"SLURM_NTASKS_PER_NODE=64", "SLURM_STEP_TASKS_PER_NODE=1", 1},
        {"LOCAL_WORLD_SIZE=2", "SLURM_NTASKS_PER_NODE=64", 2},
        {"SLURM_STEP_TASKS_PER_NODE=?", "SLURM_NTASKS_PER_NODE=4", 4},
        {"LOCAL_WORLD_SIZE=0", "SLURM_NTASKS_PER_NODE=4", 4},
        /* the user knows best */
        {"FAULTLESS_HOST_SHARE=2", NULL, 2},
        {"LOCAL_WORLD_SIZE=8", "FAULTLESS_HOST_SHARE=1", 1},
        {"LOCAL_WORLD_SIZE=8", "FAULTLESS_HOST_SHARE=4096", 4096},
        {"LOCAL_WORLD_SIZE=8", "FAULTLESS_HOST_SHARE=0", 8},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_int_equal(ranks_of(table[i].a, table[i].b), table[i].ranks);
        assert_string_equal(fake.said, "");
    }
    /* A mistake in the user's own word is test_core_options's to judge; then the others count. */
    assert_int_equal(ranks_of("LOCAL_WORLD_SIZE=8", "FAULTLESS_HOST_SHARE=all"), 8);
    assert_int_equal(o.nbad, 1);
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
        assert_int_equal(ranks_of(table[i], NULL), 1);
        assert_int_equal(ranks_of(table[i], "MPI_LOCALNRANKS=3"), 3);
        assert_int_equal(o.nbad, 0);
        assert_string_equal(fake.said, "");
    }
}

CASES_MAIN(.setup = fake_install)
