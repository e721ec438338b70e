/* Counts the calls of a process that change names or wait for the disk, and lets one of them fail or kill it.

   Loaded by LD_PRELOAD. fault_at(0, 0) counts alone; fault_at(n, e) has the n-th call fail with errno e, or the process
   killed before it where e is 0. A program that the process starts has no fault. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long seen;
static long wanted;
static int failure;

void fault_at(long number, int error) {
  seen = 0;
  wanted = number;
  failure = error;
}

long faults_seen(void) { return seen; }

static int strikes(void) {
  if (atomic_fetch_add(&seen, 1) + 1 != wanted) return 0;
  if (failure == 0) kill(getpid(), SIGKILL);
  errno = failure;
  return 1;
}

#define CALL(name, parameters, arguments)                       \
  int name parameters {                                         \
    static int(*real) parameters;                               \
    if (real == NULL) real = dlsym(RTLD_NEXT, #name);           \
    return strikes() ? -1 : real arguments;                     \
  }

CALL(rename, (const char *a, const char *b), (a, b))
CALL(renameat, (int f, const char *a, int g, const char *b), (f, a, g, b))
CALL(unlink, (const char *a), (a))
CALL(unlinkat, (int f, const char *a, int o), (f, a, o))
CALL(rmdir, (const char *a), (a))
CALL(mkdir, (const char *a, mode_t m), (a, m))
CALL(mkdirat, (int f, const char *a, mode_t m), (f, a, m))
CALL(link, (const char *a, const char *b), (a, b))
CALL(linkat, (int f, const char *a, int g, const char *b, int o), (f, a, g, b, o))
CALL(symlink, (const char *a, const char *b), (a, b))
CALL(symlinkat, (const char *a, int f, const char *b), (a, f, b))
CALL(ftruncate, (int f, off_t l), (f, l))
CALL(ftruncate64, (int f, off_t l), (f, l))
CALL(fsync, (int f), (f))
CALL(fdatasync, (int f), (f))
