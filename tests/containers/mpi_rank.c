/* One line per rank: rank, size, which MPI was really loaded, and from where.
 *
 * A launcher that does not match the image's MPI starts N jobs of size 1, each
 * with exit status 0, and a host MPI that was not bound in leaves the image's
 * own in place; both look like success unless the line below is read.  With
 * MPI_EXPECTED_SIZE set, another number of ranks is an error.
 *
 * Build: mpicc -o mpi_rank mpi_rank.c
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The file that libmpi was mapped from. */
static void loaded_library(char *path, size_t size)
{
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");

    snprintf(path, size, "unknown");
    while (maps && fgets(line, sizeof line, maps)) {
        char *name = strchr(line, '/');
        if (name && strstr(name, "/libmpi")) {
            name[strcspn(name, "\n")] = '\0';
            snprintf(path, size, "%s", name);
            break;
        }
    }
    if (maps)
        fclose(maps);
}

int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING], file[4096];
    const char *expected = getenv("MPI_EXPECTED_SIZE");
    int rank, size, length, sum, bad;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = '\0';
    loaded_library(file, sizeof file);

    /* something has to go over the fabric, not only the start-up */
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    bad = sum != size * (size - 1) / 2 || (expected && atoi(expected) != size);

    printf("rank %d of %d library \"%s\" file %s%s\n", rank, size, version, file,
           bad ? " WRONG" : "");
    MPI_Finalize();
    return bad;
}
