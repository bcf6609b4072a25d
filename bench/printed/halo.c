/* Two ranks, or more, and a grid of 50 MB each: a step makes the next grid, sends its edges to the
 * neighbours, and drops the old one.   mpirun -n 2 halo STEPS */
#include <faultless/step.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 2048, COLUMNS = 3072 };

static double smooth(const double *from, double *to)
{
    double sum = 0;

    for (long i = COLUMNS; i < (ROWS - 1L) * COLUMNS; i++) {
        to[i] = 0.25 * (from[i - 1] + from[i + 1] + from[i - COLUMNS] + from[i + COLUMNS]);
        sum += to[i];
    }
    return sum;
}

int main(int argc, char **argv)
{
    int rank, ranks, steps = argc > 1 ? atoi(argv[1]) : 10;
    double *grid = calloc((size_t)ROWS * COLUMNS, sizeof *grid), own = 0, all = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    grid[COLUMNS + rank] = 1;
    fl_step_mark();
    for (int i = 0; i < steps; i++) {
        double *next = calloc((size_t)ROWS * COLUMNS, sizeof *next);
        own = smooth(grid, next);
        MPI_Sendrecv(next + (ROWS - 2L) * COLUMNS, COLUMNS, MPI_DOUBLE, (rank + 1) % ranks, 0, next,
                     COLUMNS, MPI_DOUBLE, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        free(grid);
        grid = next;
        fl_step_mark();
    }
    if (rank == 0) {
        printf("sum %g\n", all);
    }
    free(grid);
    return MPI_Finalize();
}
