/* Which allocator serves malloc in this program? Allocates 64 MiB and asks jemalloc or tcmalloc, whichever is loaded,
 * for what it has handed out by its own count. Exits with 1 if none is there or its count is less. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 1024, SIZE = 65536 };

static char *held[PIECES];

static size_t by_jemalloc(void) {
    int (*mallctl)(const char *, void *, size_t *, void *, size_t) =
        (int (*)(const char *, void *, size_t *, void *, size_t))dlsym(RTLD_DEFAULT, "mallctl");
    size_t allocated = 0, length = sizeof allocated;
    uint64_t epoch = 1;
    if (mallctl && !mallctl("epoch", NULL, NULL, &epoch, sizeof epoch))
        mallctl("stats.allocated", &allocated, &length, NULL, 0);
    return allocated;
}

static size_t by_tcmalloc(void) {
    int (*property)(const char *, size_t *) =
        (int (*)(const char *, size_t *))dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty");
    size_t allocated = 0;
    if (property)
        property("generic.current_allocated_bytes", &allocated);
    return allocated;
}

int main(void) {
    const size_t wanted = (size_t)PIECES * SIZE;
    for (int i = 0; i < PIECES; i++) {
        held[i] = malloc(SIZE);
        if (!held[i])
            return 2;
        memset(held[i], i, SIZE);
    }
    size_t jemalloc = by_jemalloc(), tcmalloc = by_tcmalloc();
    Dl_info where;
    void *used = dlsym(RTLD_DEFAULT, "malloc");
    printf("malloc is in %s\n", used && dladdr(used, &where) && where.dli_fname ? where.dli_fname : "?");
    printf("jemalloc counts %zu bytes, tcmalloc %zu, of %zu\n", jemalloc, tcmalloc, wanted);
    if (jemalloc >= wanted)
        puts("jemalloc serves malloc");
    if (tcmalloc >= wanted)
        puts("tcmalloc serves malloc");
    return jemalloc < wanted && tcmalloc < wanted;
}
