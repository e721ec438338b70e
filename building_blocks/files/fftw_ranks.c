/* One wave over the rows of all ranks: its transform has one peak, and the transform back is the wave. */
#include "mpi_ranks.h"
#include <fftw3-mpi.h>
#include <math.h>

#define ROWS 64
#define COLUMNS 32

int main(int argc, char **argv)
{
    ptrdiff_t length, rows, first, i, j;
    fftw_complex *data;
    fftw_plan forward, back;
    double worst = 0, pi = acos(-1.0);

    begin(&argc, &argv);
    fftw_mpi_init();
    length = fftw_mpi_local_size_2d(ROWS, COLUMNS, MPI_COMM_WORLD, &rows, &first);
    data = fftw_alloc_complex(length);
    forward = fftw_mpi_plan_dft_2d(ROWS, COLUMNS, data, data, MPI_COMM_WORLD, FFTW_FORWARD, FFTW_ESTIMATE);
    back = fftw_mpi_plan_dft_2d(ROWS, COLUMNS, data, data, MPI_COMM_WORLD, FFTW_BACKWARD, FFTW_ESTIMATE);
    check(rows < ROWS || size == 1, "each rank has a part of the rows");
    for (i = 0; i < rows; i++)
        for (j = 0; j < COLUMNS; j++) {
            data[i * COLUMNS + j][0] = cos(2 * pi * 3 * (first + i) / ROWS);
            data[i * COLUMNS + j][1] = sin(2 * pi * 3 * (first + i) / ROWS);
        }
    fftw_execute(forward);
    for (i = 0; i < rows; i++)
        for (j = 0; j < COLUMNS; j++)
            worst = fmax(worst, fabs(data[i * COLUMNS + j][0] - (first + i == 3 && j == 0 ? ROWS * COLUMNS : 0)));
    check(worst < 1e-8, "the wave has one peak");
    fftw_execute(back);
    worst = 0;
    for (i = 0; i < rows; i++)
        for (j = 0; j < COLUMNS; j++)
            worst = fmax(worst, fabs(data[i * COLUMNS + j][0] / (ROWS * COLUMNS) - cos(2 * pi * 3 * (first + i) / ROWS)));
    check(worst < 1e-12, "the transform back is the wave");
    fftw_destroy_plan(forward);
    fftw_destroy_plan(back);
    fftw_free(data);
    fftw_mpi_cleanup();
    return end("transformed one wave and back", NULL);
}
