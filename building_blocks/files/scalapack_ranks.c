/* A system of equations whose matrix all ranks have parts of: what is solved is what it was made from. */
#include "mpi_ranks.h"
#include <math.h>

#define N 200
#define BLOCK 16

extern void Cblacs_pinfo(int *rank, int *size);
extern void Cblacs_get(int context, int what, int *value);
extern void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
extern void Cblacs_gridinfo(int context, int *rows, int *columns, int *row, int *column);
extern void Cblacs_gridexit(int context);
extern int numroc_(const int *n, const int *block, const int *row, const int *first, const int *rows);
extern void descinit_(int *d, const int *m, const int *n, const int *mb, const int *nb, const int *row,
                      const int *column, const int *context, const int *leading, int *info);
extern void pdgesv_(const int *n, const int *columns, double *a, const int *ia, const int *ja, const int *da,
                    int *pivots, double *b, const int *ib, const int *jb, const int *db, int *info);

/* The row of the whole matrix that a row of this rank is. */
static int whole(int local, int rows, int row)
{
    return (local / BLOCK * rows + row) * BLOCK + local % BLOCK;
}

int main(int argc, char **argv)
{
    int context, rows, columns, row, column, mine, leading, info, i, j, da[9], db[9];
    const int n = N, block = BLOCK, zero = 0, one = 1;
    double *a, *b, worst = 0;
    int *pivots;

    begin(&argc, &argv);
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "Row", size, 1);
    Cblacs_gridinfo(context, &rows, &columns, &row, &column);
    mine = numroc_(&n, &block, &row, &zero, &rows);
    leading = mine > 0 ? mine : 1;
    a = malloc(sizeof *a * leading * N);
    b = malloc(sizeof *b * leading);
    pivots = malloc(sizeof *pivots * (leading + BLOCK));
    descinit_(da, &n, &n, &block, &block, &zero, &zero, &context, &leading, &info);
    descinit_(db, &n, &one, &block, &block, &zero, &zero, &context, &leading, &info);
    /* Large on the diagonal; the right side is that of the numbers 1, 2, 3 ... */
    for (i = 0; i < mine; i++) {
        int r = whole(i, rows, row);
        b[i] = 0;
        for (j = 0; j < N; j++) {
            a[i + (long)j * leading] = (r == j ? N : 0) + 1.0 / (1 + r + j);
            b[i] += a[i + (long)j * leading] * (j + 1);
        }
    }
    pdgesv_(&n, &one, a, &one, &one, da, pivots, b, &one, &one, db, &info);
    check(info == 0, "the system is solved");
    for (i = 0; i < mine; i++)
        worst = fmax(worst, fabs(b[i] - (whole(i, rows, row) + 1)));
    check(worst < 1e-8, "the solution is what the right side was made from");
    check(mine < N || size == 1, "each rank has a part of the rows");
    Cblacs_gridexit(context);
    return end("solved one system of 200 equations by ScaLAPACK", NULL);
}
