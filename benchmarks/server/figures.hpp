// What the programs that make load have in common: the clock, their request, percentiles.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace figures {

[[noreturn]] inline void fail(const std::string& what) {
    std::fprintf(stderr, "%s: %s\n", what.c_str(), std::strerror(errno));
    std::exit(1);
}

inline std::uint64_t now_ns() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec);
}

// Of this process, all threads.
inline double cpu_s() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// A file's content, in memory as long as the process is.
inline std::string_view mapped(const char* path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status{};
    if (file < 0 || fstat(file, &status) != 0 || status.st_size == 0) fail(path);
    const auto size = static_cast<std::size_t>(status.st_size);
    void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (data == MAP_FAILED) fail(path);
    close(file);
    return {static_cast<const char*>(data), size};
}

// As many open files as the system lets this process have: each connection is one.
inline void raise_descriptors() {
    rlimit descriptors{};
    getrlimit(RLIMIT_NOFILE, &descriptors);
    descriptors.rlim_cur = descriptors.rlim_max;
    setrlimit(RLIMIT_NOFILE, &descriptors);
}

// Percentiles by the nearest rank, in seconds, as members of JSON; nothing where there are no
// values.
inline void print_percentiles(const char* name, std::vector<double> values) {
    if (values.empty()) return;
    std::sort(values.begin(), values.end());
    const auto at = [&values](double part) {
        const auto rank =
            static_cast<std::size_t>(std::ceil(part * static_cast<double>(values.size())));
        return values[std::min(values.size(), std::max<std::size_t>(rank, 1)) - 1];
    };
    std::printf(R"(, "%s_p50_s": %.7f, "%s_p99_s": %.7f, "%s_max_s": %.7f)", name, at(0.5), name,
                at(0.99), name, values.back());
}

}  // namespace figures
