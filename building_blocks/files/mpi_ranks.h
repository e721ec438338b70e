/* What the programs of libraries over MPI share: the ranks are of one job, and each of them has loaded one MPI.
   Status 2: a result is wrong. Status 3: HPCGEN_RANKS is another number. Status 4: a second MPI library is loaded. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, wrong;

/* Counts what does not hold, and says it. */
static void check(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "rank %d: wrong: %s\n", rank, what);
        wrong++;
    }
}

static void begin(int *argc, char ***argv)
{
    const char *ranks = getenv("HPCGEN_RANKS");

    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (ranks != NULL && atoi(ranks) != size) {
        fprintf(stderr, "%d ranks, not %s\n", size, ranks);
        MPI_Finalize();
        exit(3);
    }
}

/* A file of the folder that all ranks share: the program's first argument, else the present folder. */
static inline const char *file_in(int argc, char **argv, const char *name)
{
    static char path[4400];
    snprintf(path, sizeof path, "%s/%s", argc > 1 ? argv[1] : ".", name);
    return path;
}

/* The MPI libraries that are mapped, one line for each. */
static int libraries(void)
{
    char line[4400], last[4400] = "", *path;
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        line[strcspn(line, "\n")] = 0;
        path = strchr(line, '/');
        if (path == NULL || strcmp(path, last) == 0)
            continue;
        if (strstr(path, "/libmpi.so") != NULL || strstr(path, "/libmpich.so") != NULL) {
            printf("rank %d maps %s\n", rank, path);
            strcpy(last, path);
            count++;
        }
    }
    if (maps != NULL)
        fclose(maps);
    return count;
}

/* Removes the file, if there is one, and says on rank 0 what held on all ranks. */
static int end(const char *what, const char *file)
{
    int mine[2], most[2] = {0, 0}, status;
    mine[0] = wrong;
    mine[1] = libraries();
    MPI_Allreduce(mine, most, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    status = most[0] > 0 ? 2 : most[1] > 1 ? 4 : 0;
    if (rank == 0 && file != NULL)
        remove(file);
    if (rank == 0 && status == 0)
        printf("%d ranks: %s\n", size, what);
    if (rank == 0 && status == 4)
        fprintf(stderr, "a second MPI library is loaded\n");
    MPI_Finalize();
    return status;
}
