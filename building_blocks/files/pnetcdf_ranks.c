/* Every rank writes its row of one file with all others, and reads that of the next rank. */
#include "mpi_ranks.h"
#include <pnetcdf.h>

#define COLUMNS 1000

int main(int argc, char **argv)
{
    int row[COLUMNS], i, other, file, dimensions[2], rows;
    MPI_Offset start[2] = {0, 0}, part[2] = {1, COLUMNS};
    const char *path;

    begin(&argc, &argv);
    path = file_in(argc, argv, "pnetcdf_ranks.nc");
    check(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file) == NC_NOERR,
          "the file is made");
    ncmpi_def_dim(file, "rank", size, &dimensions[0]);
    ncmpi_def_dim(file, "column", COLUMNS, &dimensions[1]);
    ncmpi_def_var(file, "rows", NC_INT, 2, dimensions, &rows);
    ncmpi_enddef(file);
    for (i = 0; i < COLUMNS; i++)
        row[i] = rank * COLUMNS + i;
    start[0] = rank;
    check(ncmpi_put_vara_int_all(file, rows, start, part, row) == NC_NOERR, "the row is written");
    ncmpi_close(file);

    check(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &file) == NC_NOERR, "the file is opened");
    ncmpi_inq_varid(file, "rows", &rows);
    other = (rank + 1) % size;
    start[0] = other;
    check(ncmpi_get_vara_int_all(file, rows, start, part, row) == NC_NOERR, "the next rank's row is read");
    for (i = 0; i < COLUMNS && row[i] == other * COLUMNS + i; i++)
        ;
    check(i == COLUMNS, "the row is what the next rank wrote");
    ncmpi_close(file);
    return end("wrote one file by PnetCDF and read it", path);
}
