// Keeps one core from halting, at the idle priority: whatever else wants to run has it at once.
// In a session of its own: where Linux groups processes by these (autogroup), the group of who
// started it would be as urgent as ever, and keep other sessions from the core.
//
//     awake CORE
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>

int main(int count, char** arguments) {
    if (count != 2) return 2;
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(static_cast<unsigned>(std::atoi(arguments[1])), &cores);
    const sched_param priority{};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setsid();
    if (std::FILE* const group = std::fopen("/proc/self/autogroup", "w")) {
        std::fputs("19", group);
        std::fclose(group);
    }
    if (sched_setaffinity(0, sizeof cores, &cores) != 0 ||
        sched_setscheduler(0, SCHED_IDLE, &priority) != 0) {
        std::perror("awake");
        return 1;
    }
    for (std::atomic<unsigned> turn = 0;; turn.fetch_add(1, std::memory_order_relaxed)) continue;
}
