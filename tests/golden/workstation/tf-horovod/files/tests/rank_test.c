/* rank_test: is this one MPI job, and which libraries does it really use?
   Prints "rank R of N on HOST" and the MPI and fabric libraries mapped in each rank, which need not be those
   that were linked; the release of rank 0's library, and that of ranks with another one. Status 2: the ranks do not reach each other. Status 3: HPCGEN_RANKS is set to another
   number; with a wrong PMI some launchers start N jobs of one rank each, and every one of them succeeds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const wanted[] = {
    "/libmpi.so", "/libmpi_", "/libmpich.", "/libfabric.", "-fi.so", "/libpsm2.", "/libucp.", NULL};

static int is_wanted(const char *path)
{
    int i;
    for (i = 0; wanted[i] != NULL; i++)
        if (strstr(path, wanted[i]) != NULL)
            return 1;
    return 0;
}

/* The mappings of one file are neighbours, so only the last path printed is remembered. */
static void print_libraries(int rank)
{
    char line[4400], last[4400] = "", *path;
    FILE *maps = fopen("/proc/self/maps", "r");
    if (maps == NULL)
        return;
    while (fgets(line, sizeof line, maps) != NULL) {
        line[strcspn(line, "\n")] = 0;
        path = strstr(line, " /");
        if (path != NULL && is_wanted(path) && strcmp(path, last) != 0) {
            printf("rank %d maps%s\n", rank, path);
            strcpy(last, path);
        }
    }
    fclose(maps);
}

int main(int argc, char **argv)
{
    int rank, size, length, status = 0;
    long mine, sum = -1;
    char host[MPI_MAX_PROCESSOR_NAME], version[MPI_MAX_LIBRARY_VERSION_STRING] = "", first[sizeof version];
    const char *ranks = getenv("HPCGEN_RANKS");

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);
    mine = rank;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);

    printf("rank %d of %d on %s\n", rank, size, host);
    print_libraries(rank);
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = 0;
    memcpy(first, version, sizeof first);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("library %s\n", version);
    else if (strcmp(first, version) != 0)
        printf("rank %d has library %s\n", rank, version);
    if (sum != (long)size * (size - 1) / 2) {
        fprintf(stderr, "rank %d: the sum of the ranks is %ld\n", rank, sum);
        status = 2;
    }
    if (ranks != NULL && *ranks != 0 && strtol(ranks, NULL, 10) != size) {
        fprintf(stderr, "rank %d: %s ranks were wanted, this job has %d\n", rank, ranks, size);
        status = 3;
    }
    fflush(stdout);
    MPI_Finalize();
    return status;
}
