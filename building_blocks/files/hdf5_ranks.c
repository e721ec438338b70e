/* Every rank writes its row of one HDF5 file with all others, and reads that of the next rank. */
#include "mpi_ranks.h"
#include <hdf5.h>

#define COLUMNS 1000

int main(int argc, char **argv)
{
    int row[COLUMNS], i, other;
    hsize_t all[2], part[2] = {1, COLUMNS}, start[2] = {0, 0};
    hid_t access, transfer, file, memory, space, set;
    const char *path;

    begin(&argc, &argv);
    path = file_in(argc, argv, "hdf5_ranks.h5");
    all[0] = size;
    all[1] = COLUMNS;
    access = H5Pcreate(H5P_FILE_ACCESS);
    check(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0, "HDF5 is over MPI");
    transfer = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
    memory = H5Screate_simple(2, part, NULL);
    space = H5Screate_simple(2, all, NULL);

    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    check(file >= 0, "the file is made");
    set = H5Dcreate2(file, "rows", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    for (i = 0; i < COLUMNS; i++)
        row[i] = rank * COLUMNS + i;
    start[0] = rank;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, part, NULL);
    check(H5Dwrite(set, H5T_NATIVE_INT, memory, space, transfer, row) >= 0, "the row is written");
    H5Dclose(set);
    H5Fclose(file);

    file = H5Fopen(path, H5F_ACC_RDONLY, access);
    set = H5Dopen2(file, "rows", H5P_DEFAULT);
    other = (rank + 1) % size;
    start[0] = other;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, part, NULL);
    check(H5Dread(set, H5T_NATIVE_INT, memory, space, transfer, row) >= 0, "the next rank's row is read");
    for (i = 0; i < COLUMNS && row[i] == other * COLUMNS + i; i++)
        ;
    check(i == COLUMNS, "the row is what the next rank wrote");
    H5Dclose(set);
    H5Fclose(file);
    H5Sclose(space);
    H5Sclose(memory);
    H5Pclose(transfer);
    H5Pclose(access);
    return end("wrote one HDF5 file and read it", path);
}
