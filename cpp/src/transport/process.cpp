#include "transport/process.hpp"

#include <pthread.h>

#include <atomic>

namespace polymux::transport {

namespace {

std::atomic<unsigned> generation = 0;

void count_fork() {
    generation.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

unsigned process_generation() noexcept {
    [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, &count_fork);
    return generation.load(std::memory_order_relaxed);
}

}  // namespace polymux::transport
