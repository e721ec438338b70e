/* Every rank writes its row of one netCDF-4 file with all others, and reads that of the next rank. */
#include "mpi_ranks.h"
#include <netcdf.h>
#include <netcdf_par.h>

#define COLUMNS 1000

int main(int argc, char **argv)
{
    int row[COLUMNS], i, other, file, dimensions[2], rows;
    size_t start[2] = {0, 0}, part[2] = {1, COLUMNS};
    const char *path;

    begin(&argc, &argv);
    path = file_in(argc, argv, "netcdf_ranks.nc");
    check(nc_create_par(path, NC_CLOBBER | NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &file) == NC_NOERR,
          "the file is made by all ranks");
    nc_def_dim(file, "rank", size, &dimensions[0]);
    nc_def_dim(file, "column", COLUMNS, &dimensions[1]);
    nc_def_var(file, "rows", NC_INT, 2, dimensions, &rows);
    nc_enddef(file);
    nc_var_par_access(file, rows, NC_COLLECTIVE);
    for (i = 0; i < COLUMNS; i++)
        row[i] = rank * COLUMNS + i;
    start[0] = rank;
    check(nc_put_vara_int(file, rows, start, part, row) == NC_NOERR, "the row is written");
    nc_close(file);

    check(nc_open_par(path, NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file) == NC_NOERR, "the file is opened");
    nc_inq_varid(file, "rows", &rows);
    nc_var_par_access(file, rows, NC_COLLECTIVE);
    other = (rank + 1) % size;
    start[0] = other;
    check(nc_get_vara_int(file, rows, start, part, row) == NC_NOERR, "the next rank's row is read");
    for (i = 0; i < COLUMNS && row[i] == other * COLUMNS + i; i++)
        ;
    check(i == COLUMNS, "the row is what the next rank wrote");
    nc_close(file);
    return end("wrote one netCDF-4 file and read it", path);
}
