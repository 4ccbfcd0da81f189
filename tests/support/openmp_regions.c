/* Runs parallel regions with all constructs that llama.cpp uses, and prints what does not depend on
   the order of the threads. */
#include <omp.h>
#include <pthread.h>
#include <stdio.h>

static void run(int threads, long n) {
    long sum = 0;
    long singles = 0;
    long numbers = 0;
    int size = 0;
    long double parts = 0;
#pragma omp parallel num_threads(threads)
    {
#pragma omp single nowait
        size = omp_get_num_threads();
        for (int i = 0; i < 200; i++) {
#pragma omp single nowait
            __atomic_fetch_add(&singles, 1, __ATOMIC_SEQ_CST);
#pragma omp barrier
        }
        __atomic_fetch_or(&numbers, 1L << omp_get_thread_num(), __ATOMIC_SEQ_CST);
        long own = 0;
#pragma omp for schedule(nonmonotonic : dynamic, 3)
        for (long i = 5; i < n; i += 2) own += i;
#pragma omp for schedule(nonmonotonic : dynamic, 2)
        for (long i = n; i > 0; i -= 3) own += 7 * i;
#pragma omp for schedule(nonmonotonic : dynamic, 1)
        for (long i = 3; i < 3; i++) own += 1000000;
        __atomic_fetch_add(&sum, own, __ATOMIC_SEQ_CST);
#pragma omp parallel num_threads(4)
        {
#pragma omp single
            __atomic_fetch_add(&singles, 1000, __ATOMIC_SEQ_CST);
        }
        /* The processor has no instruction for this. */
#pragma omp atomic
        parts += 1;
    }
    printf("%d %ld %ld %lx %g\n", size, sum, singles, numbers, (double)parts);
}

static void* run_many(void* unused) {
    for (int i = 0; i < 20; i++) run(1 + i % 5, 1000 + i);
    return unused;
}

int main(void) {
#pragma omp barrier
    for (int threads = 1; threads < 9; threads++) run(threads, 997);
    /* Each thread has its own team. */
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run_many, NULL) != 0) return 1;
        pthread_join(thread, NULL);
    }
    return 0;
}
