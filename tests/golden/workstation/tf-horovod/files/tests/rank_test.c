/* rank_test: is this one MPI job, and which libraries does it really use?
   Prints "rank R of N on HOST" and the MPI and fabric libraries mapped in each rank, which need not be those
   that were linked; the release of rank 0's library, and that of ranks with another one; and how fast 64 MB go between
   the first two ranks of each node. Status 2: the ranks do not reach each other. Status 3: HPCGEN_RANKS is set to another
   number; with a wrong PMI some launchers start N jobs of one rank each, and every one of them succeeds. */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MESSAGE = 64000000, TIMES = 4 };

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

/* A library that copies from one process's memory to another's (CMA) calls these by name. The program's own come first
   (it is linked with -rdynamic), so they know how much went that way. */
static double by_cma;

static ssize_t counted(long number, pid_t pid, const struct iovec *mine, unsigned long of_mine,
                       const struct iovec *other, unsigned long of_other, unsigned long flags)
{
    ssize_t moved = syscall(number, pid, mine, of_mine, other, of_other, flags);
    by_cma += moved > 0 ? moved : 0;
    return moved;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *mine, unsigned long of_mine, const struct iovec *other,
                         unsigned long of_other, unsigned long flags)
{
    return counted(SYS_process_vm_readv, pid, mine, of_mine, other, of_other, flags);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *mine, unsigned long of_mine, const struct iovec *other,
                          unsigned long of_other, unsigned long flags)
{
    return counted(SYS_process_vm_writev, pid, mine, of_mine, other, of_other, flags);
}

static long namespace_of(const char *kind)
{
    struct stat found;
    return stat(kind, &found) == 0 ? (long)found.st_ino : 0;
}

/* Why the memory of the process that told this is closed to this one; "" if it is open. */
static const char *closed(const long told[4])
{
    static char why[200];
    long seen = 0;
    struct iovec mine = {&seen, sizeof seen}, other = {(void *)told[1], sizeof seen};
    if (told[3] != namespace_of("/proc/self/ns/pid"))
        return ", which is closed: another PID namespace";
    if (syscall(SYS_process_vm_readv, (pid_t)told[0], &mine, 1UL, &other, 1UL, 0UL) == sizeof seen)
        return "";
    snprintf(why, sizeof why, ", which is closed: %s%s", strerror(errno),
             told[2] != namespace_of("/proc/self/ns/user") ? ", another user namespace" : "");
    return why;
}

/* The best time of several, of one message from the node's first rank to its second, which also tells by which way.
   Gives 1 if it does not arrive whole. */
static int move(MPI_Comm node, int place, int rank, const char *host)
{
    int i, first = rank, bad = 0;
    double began, best = 0, cma = 0;
    char *message = malloc(MESSAGE);
    long word = 1, told[4] = {getpid(), (long)&word, namespace_of("/proc/self/ns/user"), namespace_of("/proc/self/ns/pid")};
    if (message == NULL)
        return 0;
    memset(message, 0, MESSAGE);
    for (i = 1; i <= TIMES; i++) {
        began = MPI_Wtime();
        if (place == 0) {
            message[0] = message[MESSAGE - 1] = i;
            MPI_Send(message, MESSAGE, MPI_BYTE, 1, 0, node);
        } else
            MPI_Recv(message, MESSAGE, MPI_BYTE, 0, 0, node, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&by_cma, 1, MPI_DOUBLE, 1 - place, 1, &cma, 1, MPI_DOUBLE, 1 - place, 1, node, MPI_STATUS_IGNORE);
        bad |= message[0] != i || message[MESSAGE - 1] != i;
        began = MPI_Wtime() - began;
        best = i == 1 || began < best ? began : best;
    }
    if (place == 0) {
        MPI_Send(&first, 1, MPI_INT, 1, 2, node);
        MPI_Send(told, 4, MPI_LONG, 1, 3, node);
        MPI_Recv(&word, 1, MPI_LONG, 1, 4, node, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&first, 1, MPI_INT, 0, 2, node, MPI_STATUS_IGNORE);
        MPI_Recv(told, 4, MPI_LONG, 0, 3, node, MPI_STATUS_IGNORE);
        cma += by_cma;
        printf("within %s: 64 MB from rank %d to rank %d at %.2f GB/s, %s%s\n", host, first, rank, MESSAGE / best / 1e9,
               cma >= MESSAGE ? "by CMA" : "not by CMA", cma >= MESSAGE ? "" : closed(told));
        MPI_Send(&word, 1, MPI_LONG, 0, 4, node);
    }
    free(message);
    return bad;
}

/* Status 2 where a message between two ranks of the node does not arrive whole. */
static int within_node(int rank, const char *host)
{
    int place, ranks, status = 0;
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &place);
    MPI_Comm_size(node, &ranks);
    if (ranks > 1 && place < 2 && move(node, place, rank, host)) {
        fprintf(stderr, "rank %d: a message of 64 MB within %s is damaged\n", rank, host);
        status = 2;
    }
    MPI_Comm_free(&node);
    return status;
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
    fflush(stdout);
    status = within_node(rank, host);
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
