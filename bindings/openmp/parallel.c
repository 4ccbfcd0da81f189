/* Limits the threads of a library that uses GCC's OpenMP. Not a Python module: it is loaded with
   RTLD_GLOBAL before the library, whose calls of GOMP_parallel then come here. Any thread may call
   these functions. */
#include <stdatomic.h>
#include <stddef.h>

#define PUBLIC __attribute__((visibility("default")))

typedef void work_function(void* data);
typedef void parallel_function(work_function* work, void* data, unsigned threads, unsigned flags);

PUBLIC void polymux_openmp_forward(parallel_function* parallel);
PUBLIC void polymux_openmp_limit(unsigned threads);
PUBLIC void GOMP_parallel(work_function* work, void* data, unsigned threads, unsigned flags);

static _Atomic(parallel_function*) next;
static atomic_uint most;

/* Sets the function of the library's own OpenMP. Until then, work is done by the calling thread
 * alone. */
void polymux_openmp_forward(parallel_function* parallel) {
    atomic_store(&next, parallel);
}

/* Sets the maximum for parallel regions that begin later; 0: no limit. */
void polymux_openmp_limit(unsigned threads) {
    atomic_store_explicit(&most, threads, memory_order_relaxed);
}

void GOMP_parallel(work_function* work, void* data, unsigned threads, unsigned flags) {
    parallel_function* const parallel = atomic_load(&next);
    if (parallel == NULL) {
        work(data);
        return;
    }
    const unsigned limit = atomic_load_explicit(&most, memory_order_relaxed);
    parallel(work, data, limit != 0 && (threads == 0 || threads > limit) ? limit : threads, flags);
}
