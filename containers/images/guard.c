/* Stands before libfaketime in LD_PRELOAD, so that a program with jemalloc starts at all.
 *
 * jemalloc calls clock_gettime and pthread_cond_init while it initialises; both land in libfaketime, whose own
 * initialisation allocates, which waits for jemalloc: for ever (libfaketime issues 130, 327 and 478). Until this
 * library's constructor has run, the two functions therefore do the least that is right without libfaketime: the bare
 * system call, and a zeroed condition, which is what the C library's initialiser makes of default attributes. From then
 * on both go on to the next library, which is libfaketime.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int (*next_clock_gettime)(clockid_t, struct timespec *);
static int (*next_cond_init)(pthread_cond_t *, const pthread_condattr_t *);

__attribute__((constructor)) static void open_guard(void)
{
    next_cond_init = dlvsym(RTLD_NEXT, "pthread_cond_init", "GLIBC_2.3.2");
    next_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    return next_clock_gettime ? next_clock_gettime(clock, now) : (int)syscall(SYS_clock_gettime, clock, now);
}

int pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes)
{
    if (next_cond_init)
        return next_cond_init(condition, attributes);
    memset(condition, 0, sizeof *condition);
    return 0;
}
