/* A matrix product by whatever BLAS this program is linked with: is it right, and which library made it?
 *
 * The matrices hold small whole numbers, so that the product is exact whatever the order of the sums. Prints the file
 * that dgemm_ was found in and what the library says of itself; exits with 1 if a number is wrong. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

extern void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
                   const int *, const double *, const int *, const double *, double *, const int *);

enum { N = 700 };

static int of_a(int row, int column) { return (7 * row + 3 * column) % 13 - 6; }
static int of_b(int row, int column) { return (5 * row + 11 * column) % 17 - 8; }

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void say_library(void) {
    Dl_info where;
    if (dladdr((void *)dgemm_, &where) && where.dli_fname)
        printf("dgemm_ is in %s\n", where.dli_fname);
    char *(*openblas)(void) = (char *(*)(void))dlsym(RTLD_DEFAULT, "openblas_get_config");
    char *(*core)(void) = (char *(*)(void))dlsym(RTLD_DEFAULT, "openblas_get_corename");
    if (openblas)
        printf("%s, kernels for %s\n", openblas(), core ? core() : "?");
    void (*mkl)(char *, int) = (void (*)(char *, int))dlsym(RTLD_DEFAULT, "MKL_Get_Version_String");
    if (mkl) {
        char text[200] = "";
        mkl(text, sizeof text - 1);
        printf("%s\n", text);
    }
}

int main(void) {
    const int n = N;
    const double one = 1, zero = 0;
    double *a = malloc(sizeof(double) * N * N), *b = malloc(sizeof(double) * N * N), *c = calloc(N * N, sizeof(double));
    if (!a || !b || !c)
        return 2;
    for (int column = 0; column < N; column++)
        for (int row = 0; row < N; row++) {
            a[row + column * N] = of_a(row, column);
            b[row + column * N] = of_b(row, column);
        }
    say_library();
    double start = 0;
    for (int round = 0; round < 2; round++) { /* the first one also starts threads */
        start = seconds();
        dgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n);
    }
    double taken = seconds() - start;
    long wrong = 0;
    for (int column = 0; column < N; column++)
        for (int row = 0; row < N; row++) {
            long sum = 0;
            for (int k = 0; k < N; k++)
                sum += of_a(row, k) * of_b(k, column);
            wrong += c[row + column * N] != (double)sum;
        }
    printf("%ld of %d numbers wrong, %.1f Gflop/s\n", wrong, N * N, 2e-9 * N * N * N / taken);
    return wrong != 0;
}
