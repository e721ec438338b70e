// Every rank writes its row of one ADIOS2 file with all others, and reads that of the next rank.
#include "mpi_ranks.h"
#include <adios2_c.h>
#include <filesystem>
#include <string>
#include <vector>

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    const std::string path = file_in(argc, argv, "adios2_ranks.bp");
    const size_t columns = 1000, other = (rank + 1) % size;
    const size_t all[2] = {(size_t)size, columns}, mine[2] = {(size_t)rank, 0}, next[2] = {other, 0}, part[2] = {1, columns};
    std::vector<int32_t> row(columns);

    adios2_adios *adios = adios2_init_mpi(MPI_COMM_WORLD);
    adios2_io *io = adios2_declare_io(adios, "write");
    adios2_variable *rows =
        adios2_define_variable(io, "rows", adios2_type_int32_t, 2, all, mine, part, adios2_constant_dims_true);
    adios2_engine *engine = adios2_open(io, path.c_str(), adios2_mode_write);
    check(engine != NULL, "the file is made");
    for (size_t i = 0; i < columns; i++)
        row[i] = (int32_t)(rank * columns + i);
    check(adios2_put(engine, rows, row.data(), adios2_mode_sync) == adios2_error_none, "the row is written");
    adios2_close(engine);

    io = adios2_declare_io(adios, "read");
    engine = adios2_open(io, path.c_str(), adios2_mode_readRandomAccess);
    rows = adios2_inquire_variable(io, "rows");
    adios2_set_selection(rows, 2, next, part);
    check(adios2_get(engine, rows, row.data(), adios2_mode_sync) == adios2_error_none, "the next rank's row is read");
    size_t same = 0;
    while (same < columns && row[same] == (int32_t)(other * columns + same))
        same++;
    check(same == columns, "the row is what the next rank wrote");
    adios2_close(engine);
    adios2_finalize(adios);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        std::filesystem::remove_all(path);
    return end("wrote one ADIOS2 file and read it", NULL);
}
