/* Jacobi's iteration on a tile for each rank, which exchange their sides; it computes whenever a line says how many steps. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIDE = 510, WIDTH = SIDE + 2, FIRST = 3 };
static double *old, *new, sent[2][SIDE], received[2][SIDE];
static int rank, ranks;

static double step(void) {
    int left = rank ? rank - 1 : MPI_PROC_NULL, right = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    for (int y = 0; y < SIDE; y++) {
        sent[0][y] = old[(y + 1) * WIDTH + 1];
        sent[1][y] = old[(y + 1) * WIDTH + SIDE];
    }
    MPI_Sendrecv(sent[0], SIDE, MPI_DOUBLE, left, 0, received[1], SIDE, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(sent[1], SIDE, MPI_DOUBLE, right, 1, received[0], SIDE, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int y = 0; y < SIDE; y++) {
        if (left != MPI_PROC_NULL) old[(y + 1) * WIDTH] = received[0][y];
        if (right != MPI_PROC_NULL) old[(y + 1) * WIDTH + SIDE + 1] = received[1][y];
    }
    double change = 0;
    for (int y = 1; y <= SIDE; y++)
        for (int x = 1; x <= SIDE; x++) {
            int at = y * WIDTH + x;
            new[at] = 0.25 * (old[at - 1] + old[at + 1] + old[at - WIDTH] + old[at + WIDTH]);
            change += (new[at] - old[at]) * (new[at] - old[at]);
        }
    double *kept = old;
    old = new, new = kept;
    return change;
}

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

/* Rank 0 reads; the others sleep till it says so: one that waits in MPI keeps a processor busy that another variant needs. */
static long asked(void) {
    long steps = 0;
    int there = 0;
    if (rank) {
        struct timespec pause = {0, 1000000};
        for (;; nanosleep(&pause, NULL)) {
            MPI_Iprobe(0, 2, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
            if (there) break;
        }
        MPI_Recv(&steps, 1, MPI_LONG, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        if (scanf("%ld", &steps) != 1) steps = 0;
        for (int other = 1; other < ranks; other++) MPI_Send(&steps, 1, MPI_LONG, other, 2, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return steps;
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    old = malloc(WIDTH * WIDTH * sizeof *old), new = malloc(WIDTH * WIDTH * sizeof *new);
    for (int at = 0; at < WIDTH * WIDTH; at++) old[at] = new[at] = (at * 2654435761u >> 8) / 16777216.0;
    double change = 0, all, begin, used, times[2], sums[2];
    for (int each = 0; each < FIRST; each++) change = step();
    begin = MPI_Wtime();
    step();
    double took = MPI_Wtime() - begin;
    MPI_Allreduce(&change, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (!rank) printf("hpcgen-bench: {\"step_seconds\": %.9f, \"numbers\": [%.17g]}\n", took, sqrt(all)), fflush(stdout);
    for (long steps; (steps = asked());) {
        begin = MPI_Wtime(), used = seconds(CLOCK_PROCESS_CPUTIME_ID);
        for (long each = 0; each < steps; each++) change = step();
        times[0] = (MPI_Wtime() - begin) / steps, times[1] = (seconds(CLOCK_PROCESS_CPUTIME_ID) - used) / steps;
        MPI_Reduce(times, sums, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        if (!rank) printf("hpcgen-bench: {\"wall\": %.9f, \"cpu\": %.9f}\n", sums[0] / ranks, sums[1]), fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
