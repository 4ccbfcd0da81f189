// The functions of GCC's OpenMP library that llama.cpp calls, for systems without libgomp.so.1,
// such as slim containers. Not a Python module: it is loaded before the library that needs
// libgomp.so.1, whose name and symbol versions it has (libgomp.map). Any thread may call these
// functions. A team is a thread that begins a parallel region, and the threads that it keeps for
// its regions. Regions inside of regions run on one thread, as by default in libgomp.
//
// Semantics: OpenMP 4.5, https://www.openmp.org/wp-content/uploads/openmp-4.5.pdf
// Calls that GCC makes: https://gcc.gnu.org/onlinedocs/libgomp/The-libgomp-ABI.html
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#define PUBLIC extern "C" __attribute__((visibility("default")))

namespace {

using Work = void(void* data);

/// Threads wait for each other for microseconds, so they look this often before they sleep.
constexpr int looks_before_sleep = 5'000;

void pause_processor() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

void wait_for_change(const std::atomic<unsigned>& value, unsigned old) noexcept {
    for (int look = 0; look < looks_before_sleep; ++look) {
        if (value.load(std::memory_order_acquire) != old) return;
        pause_processor();
    }
    value.wait(old, std::memory_order_acquire);
}

/// A parallel region. Its threads are numbered from 0, which is the thread that began it.
struct Region {
    unsigned size = 1;
    Work* work = nullptr;
    void* data = nullptr;
    /// Constructs `single` that a thread has taken.
    std::atomic<unsigned> singles = 0;
    std::atomic<unsigned> arrived = 0;
    std::atomic<unsigned> barriers = 0;
    /// The loop that the threads share. The mutex protects these.
    std::mutex mutex;
    unsigned loops = 0;
    long next = 0;
    long end = 0;
    long increment = 1;
    long step = 1;

    void barrier() noexcept {
        // Both are read before this thread arrives, because the region may then change at any time.
        const unsigned members = size;
        const unsigned passed = barriers.load(std::memory_order_relaxed);
        if (members == 1) return;
        if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < members) {
            wait_for_change(barriers, passed);
            return;
        }
        arrived.store(0, std::memory_order_relaxed);
        barriers.store(passed + 1, std::memory_order_release);
        barriers.notify_all();
    }

    bool take_chunk(long* from, long* to) noexcept {
        const std::lock_guard lock(mutex);
        const long left = end - next;
        if (increment > 0 ? left <= 0 : left >= 0) return false;
        *from = next;
        *to = next = (increment > 0 ? left <= step : left >= step) ? end : next + step;
        return true;
    }
};

/// The part of a thread in a region.
struct Member {
    Region* region = nullptr;
    unsigned number = 0;
    unsigned singles = 0;
    unsigned loops = 0;
};

thread_local Member member;
/// The region of threads outside of regions.
thread_local Region outside;

Region& current_region() noexcept {
    return member.region == nullptr ? outside : *member.region;
}

/// Runs this thread's part of a region.
void take_part(Region& region, unsigned number) noexcept {
    const Member before = member;
    member = {.region = &region, .number = number};
    region.work(region.data);
    region.barrier();
    member = before;
}

/// A thread that waits for regions.
class Helper {
public:
    Helper(Region& region, unsigned number)
        : thread_([this, &region, number] {
              for (unsigned seen = 0;; ++seen) {
                  wait_for_change(turns_, seen);
                  if (ends_) return;
                  take_part(region, number);
              }
          }) {}

    Helper(const Helper&) = delete;
    Helper& operator=(const Helper&) = delete;

    ~Helper() {
        ends_ = true;
        begin();
        thread_.join();
    }

    /// Lets the thread take part in the region, which must not change until the last barrier.
    void begin() noexcept {
        turns_.fetch_add(1, std::memory_order_release);
        turns_.notify_one();
    }

private:
    alignas(64) std::atomic<unsigned> turns_ = 0;
    bool ends_ = false;
    std::thread thread_;  // Last, because it uses the others.
};

class Team {
public:
    Team() = default;
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    ~Team() {
        // If the process exits within a region, the helpers still run it.
        if (member.region == nullptr) return;
        for (std::unique_ptr<Helper>& helper : helpers_) static_cast<void>(helper.release());
    }

    void run(Work* work, void* data, unsigned threads) noexcept {
        const unsigned helpers = add_helpers(threads - 1);
        region_.size = helpers + 1;
        region_.work = work;
        region_.data = data;
        region_.singles.store(0, std::memory_order_relaxed);
        region_.loops = 0;
        for (unsigned at = 0; at < helpers; ++at) helpers_[at]->begin();
        take_part(region_, 0);
    }

private:
    /// Returns how many of the wanted helpers exist; fewer if the system refuses threads.
    unsigned add_helpers(unsigned wanted) noexcept {
        try {
            while (helpers_.size() < wanted) {
                const auto number = static_cast<unsigned>(helpers_.size()) + 1;
                helpers_.push_back(std::make_unique<Helper>(region_, number));
            }
        } catch (const std::exception&) {
        }
        return std::min(wanted, static_cast<unsigned>(helpers_.size()));
    }

    Region region_;
    std::vector<std::unique_ptr<Helper>> helpers_;
};

/// The helpers of this thread. They end with it.
thread_local Team team;

unsigned usable_processors() noexcept {
    cpu_set_t processors;
    if (sched_getaffinity(0, sizeof processors, &processors) != 0) return 1;
    return std::max(1U, static_cast<unsigned>(CPU_COUNT(&processors)));
}

/// Protects all atomic operations for which the processor has no instruction.
std::mutex atomic_operations;

}  // namespace

PUBLIC void GOMP_parallel(Work* work, void* data, unsigned threads, unsigned /*flags*/) {
    if (threads == 0) threads = usable_processors();
    if (member.region != nullptr || threads == 1) {
        Region alone;
        alone.work = work;
        alone.data = data;
        take_part(alone, 0);
        return;
    }
    team.run(work, data, threads);
}

PUBLIC void GOMP_barrier() {
    current_region().barrier();
}

PUBLIC bool GOMP_single_start() {
    Region& region = current_region();
    if (region.size == 1) return true;
    unsigned number = member.singles++;
    return region.singles.compare_exchange_strong(number, number + 1, std::memory_order_acq_rel);
}

PUBLIC bool GOMP_loop_nonmonotonic_dynamic_start(long start, long end, long increment, long chunk,
                                                 long* from, long* to) {
    Region& region = current_region();
    {
        const std::lock_guard lock(region.mutex);
        // The first thread that begins this loop.
        if (region.size == 1 || member.loops == region.loops) {
            region.next = start;
            region.end = end;
            region.increment = increment;
            region.step = increment * chunk;
            ++region.loops;
        }
    }
    ++member.loops;
    return region.take_chunk(from, to);
}

PUBLIC bool GOMP_loop_nonmonotonic_dynamic_next(long* from, long* to) {
    return current_region().take_chunk(from, to);
}

PUBLIC void GOMP_loop_end() {
    current_region().barrier();
}

PUBLIC void GOMP_atomic_start() {
    atomic_operations.lock();
}

PUBLIC void GOMP_atomic_end() {
    atomic_operations.unlock();
}

PUBLIC int omp_get_num_threads() {
    return static_cast<int>(current_region().size);
}

PUBLIC int omp_get_thread_num() {
    return static_cast<int>(member.number);
}
