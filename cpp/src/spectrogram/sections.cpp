#include "spectrogram/sections.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>

#include "polymux/pool.hpp"

namespace polymux::spectrogram {

namespace {

/// State shared by a section's threads. Helpers that start late find it closed, and return without
/// touching the caller's data.
struct Section {
    std::mutex mutex;
    std::condition_variable left;
    int inside = 0;
    bool closed = false;
    std::atomic<std::size_t> next{0};
    std::atomic<bool> out_of_memory{false};

    void work(std::size_t count, FunctionRef<void(std::size_t)> part, const CancelToken& token) {
        for (std::size_t number = next++; number < count; number = next++) {
            if (token.cancelled() || out_of_memory) return;
            try {
                part(number);
            } catch (const std::bad_alloc&) {
                out_of_memory = true;
            }
        }
    }

    bool enter() {
        const std::scoped_lock lock(mutex);
        if (!closed) ++inside;
        return !closed;
    }

    void leave() {
        const std::scoped_lock lock(mutex);
        --inside;
        left.notify_all();
    }

    void close() {
        std::unique_lock lock(mutex);
        closed = true;
        left.wait(lock, [this] { return inside == 0; });
    }
};

}  // namespace

Error cancelled() {
    return {.code = ErrorCode::cancelled, .message = "the operation was canceled"};
}

Result<void> in_parts(std::size_t count, FunctionRef<void(std::size_t)> part,
                      const CancelToken& token) {
    const auto section = std::make_shared<Section>();
    const auto max_helpers = static_cast<int>(std::min<std::size_t>(count, 64)) - 1;
    const int helpers =
        std::min({max_helpers, Pool::instance().size() - 1, Pool::instance().spare()});
    for (int helper = 0; helper < helpers; ++helper) {
        // Only helpers that entered before the caller closed may access `part`.
        Pool::instance().submit([section, count, part, token] {
            if (!section->enter()) return;
            section->work(count, part, token);
            section->leave();
        });
    }
    section->work(count, part, token);
    section->close();
    if (token.cancelled()) return cancelled();
    if (section->out_of_memory) {
        return Error{.code = ErrorCode::out_of_memory,
                     .message = "not enough memory for the spectrogram"};
    }
    return {};
}

}  // namespace polymux::spectrogram
