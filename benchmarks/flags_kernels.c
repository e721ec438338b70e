/* Small kernels of own code, by name: `kernels NAME REPETITIONS` prints seconds of the processor, of the clock, and a result.
 *
 * Sizes are read at run time, and each kernel is called through a pointer, so that no compiler knows them better than
 * it would in a program. All data fits in the second-level cache: other programs on the machine hardly disturb it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double *numbers(size_t count, unsigned seed) {
    double *made = malloc(count * sizeof *made);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        made[i] = (seed >> 8) / 16777216.0;
    }
    return made;
}

/* Jacobi's iteration on two neighbouring tiles, which exchange their halos through packed buffers. */
static double halo(int n, long repetitions) {
    int width = n + 2;
    double *old[2], *new[2], *buffer = malloc(n * sizeof *buffer), change = 0;
    for (int tile = 0; tile < 2; tile++) {
        old[tile] = numbers((size_t)width * width, 7 + tile);
        new[tile] = numbers((size_t)width * width, 7 + tile);
    }
    for (long each = 0; each < repetitions; each++) {
        for (int tile = 0; tile < 2; tile++) {
            int from = tile ? n : 1, to = tile ? 0 : n + 1;
            for (int y = 0; y < n; y++) buffer[y] = old[tile][(y + 1) * width + from];
            for (int y = 0; y < n; y++) old[1 - tile][(y + 1) * width + to] = buffer[y];
        }
        change = 0;
        for (int tile = 0; tile < 2; tile++) {
            double *a = old[tile], *b = new[tile];
            for (int y = 1; y <= n; y++)
                for (int x = 1; x <= n; x++) {
                    int at = y * width + x;
                    b[at] = 0.25 * (a[at - 1] + a[at + 1] + a[at - width] + a[at + width]);
                    change += (b[at] - a[at]) * (b[at] - a[at]);
                }
            old[tile] = b, new[tile] = a;
        }
    }
    return sqrt(change);
}

static double triad(int n, long repetitions) {
    double *a = numbers(n, 1), *b = numbers(n, 2), *c = numbers(n, 3);
    for (long each = 0; each < repetitions; each++) {
        double scale = 1.0 / (each + 1);
        for (int i = 0; i < n; i++) a[i] = b[i] + scale * c[i];
        b[each % n] = a[0];
    }
    return a[n - 1];
}

static double dgemm(int n, long repetitions) {
    double *a = numbers((size_t)n * n, 1), *b = numbers((size_t)n * n, 2), *c = numbers((size_t)n * n, 3);
    for (long each = 0; each < repetitions; each++)
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++)
                for (int j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
    return c[n];
}

/* Insertion into sorted runs, then a search for each number: what comes next depends on data. */
static double branchy(int n, long repetitions) {
    double *values = numbers(n, 5), *sorted = malloc(n * sizeof *sorted), found = 0;
    for (long each = 0; each < repetitions; each++) {
        memcpy(sorted, values, n * sizeof *sorted);
        for (int i = 1; i < n; i++) {
            double held = sorted[i];
            int j = i;
            for (; j > 0 && sorted[j - 1] > held; j--) sorted[j] = sorted[j - 1];
            sorted[j] = held;
        }
        for (int i = 0; i < n; i++) {
            int low = 0, high = n;
            while (low < high) {
                int middle = (low + high) / 2;
                if (sorted[middle] < values[i]) low = middle + 1;
                else high = middle;
            }
            if (low & 1) found += low;
            else if (values[i] > 0.5) found -= 1;
        }
        values[each % n] = 1 - values[each % n];
    }
    return found;
}

static double reductions(int n, long repetitions) {
    double *a = numbers(n, 1), *b = numbers(n, 2), total = 0;
    for (long each = 0; each < repetitions; each++) {
        double sum = 0, product = 0, largest = a[0];
        for (int i = 0; i < n; i++) sum += a[i];
        for (int i = 0; i < n; i++) product += a[i] * b[i];
        for (int i = 0; i < n; i++) largest = a[i] > largest ? a[i] : largest;
        total += sum + product + largest;
        a[each % n] += 1e-9;
    }
    return total;
}

static const struct {
    const char *name;
    double (*run)(int, long);
    int size;
    long repetitions; /* about a tenth of a second with -O2 */
} kernels[] = {
    {"halo", halo, 126, 2500},     {"triad", triad, 8192, 25000},           {"dgemm", dgemm, 64, 700},
    {"branchy", branchy, 600, 900}, {"reductions", reductions, 8192, 4500},
};

static double seconds(clockid_t of) {
    struct timespec now;
    clock_gettime(of, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int count, char **words) {
    for (size_t i = 0; count == 3 && i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(words[1], kernels[i].name) == 0) {
            double (*volatile run)(int, long) = kernels[i].run;
            volatile int size = kernels[i].size;
            double used = seconds(CLOCK_PROCESS_CPUTIME_ID), began = seconds(CLOCK_MONOTONIC);
            double result = run(size, (long)(atof(words[2]) * kernels[i].repetitions));
            used = seconds(CLOCK_PROCESS_CPUTIME_ID) - used, began = seconds(CLOCK_MONOTONIC) - began;
            printf("%.9f %.9f %.17g\n", used, began, result);
            return 0;
        }
    fprintf(stderr, "usage: kernels NAME TIMES\n");
    return 2;
}
