/* rank_test: is this really one MPI job, and which libraries does it really use?
 *
 * Every rank prints "rank R of N on HOST". The ranks are summed up with an Allreduce, which fails if they
 * cannot talk to each other. Rank 0 prints what the MPI library says it is, and every rank's mapped files are
 * searched for the MPI library, libfabric and the provider libraries, since what was linked and what a host
 * put in its place at run time are often two different files.
 *
 * If HPCGEN_RANKS is set and is not the number of ranks, the exit status is 3: with a wrong PMI some launchers
 * start N jobs of one rank each, and every one of them succeeds.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const WANTED[] = {"/libmpi.", "/libmpi_", "/libmpich.", "/libfabric.", "-fi.so", "/libpsm2.", "/libucp."};

static int is_wanted(const char *path)
{
    size_t i;
    for (i = 0; i < sizeof WANTED / sizeof *WANTED; i++)
        if (strstr(path, WANTED[i]) != NULL)
            return 1;
    return 0;
}

/* Print each mapped library once: a file's mappings are neighbours, so the last one printed is all to remember. */
static void print_libraries(int rank)
{
    char line[4400], last[4400] = "";
    FILE *maps = fopen("/proc/self/maps", "r");
    if (maps == NULL)
        return;
    while (fgets(line, sizeof line, maps) != NULL) {
        char *path = strchr(line, '/');
        if (path == NULL || !is_wanted(path))
            continue;
        path[strcspn(path, "\n")] = 0;
        if (strcmp(path, last) != 0) {
            printf("rank %d maps %s\n", rank, path);
            strcpy(last, path);
        }
    }
    fclose(maps);
}

int main(int argc, char **argv)
{
    int rank, size, length, status = 0;
    long mine, sum = -1, expected;
    char host[MPI_MAX_PROCESSOR_NAME], version[MPI_MAX_LIBRARY_VERSION_STRING];
    const char *wanted = getenv("HPCGEN_RANKS");

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);
    mine = rank;
    expected = (long)size * (size - 1) / 2;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);

    printf("rank %d of %d on %s\n", rank, size, host);
    print_libraries(rank);
    if (rank == 0) {
        MPI_Get_library_version(version, &length);
        version[strcspn(version, "\n")] = 0;
        printf("library %s\n", version);
    }
    if (sum != expected) {
        fprintf(stderr, "rank %d: the sum of the ranks is %ld, not %ld\n", rank, sum, expected);
        status = 2;
    }
    if (wanted != NULL && *wanted != 0 && strtol(wanted, NULL, 10) != size) {
        fprintf(stderr, "rank %d: %s ranks were wanted, this job has %d\n", rank, wanted, size);
        status = 3;
    }
    fflush(stdout);
    MPI_Finalize();
    return status;
}
