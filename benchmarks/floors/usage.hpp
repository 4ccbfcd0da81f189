// What a floor program has cost so far, and its report as one line of JSON.
#pragma once

#include <sys/resource.h>
#include <sys/time.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace floors {

// CPU and wall seconds since it was made.
class Meter {
public:
    Meter() : wall_(std::chrono::steady_clock::now()) { getrusage(RUSAGE_SELF, &start_); }

    // Prints `what` done `count` times, what that took in this process, and `more` members.
    void report(const char* what, std::uint64_t count, const std::string& more = "") const {
        rusage end{};
        getrusage(RUSAGE_SELF, &end);
        const double user_s = seconds(end.ru_utime) - seconds(start_.ru_utime);
        const double system_s = seconds(end.ru_stime) - seconds(start_.ru_stime);
        const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - wall_;
        std::printf(
            "{\"%s\": %llu, \"user_s\": %.6f, \"system_s\": %.6f, \"cpu_s\": %.6f, \"wall_s\": "
            "%.6f%s}\n",
            what, static_cast<unsigned long long>(count), user_s, system_s, user_s + system_s,
            wall.count(), more.c_str());
    }

private:
    static double seconds(const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    }

    std::chrono::steady_clock::time_point wall_;
    rusage start_{};
};

}  // namespace floors
