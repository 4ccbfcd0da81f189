// Notifies a consumer that must not block, through a descriptor for its event loop.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "polymux/result.hpp"

namespace polymux::transport {

class Exchange;

/// Belongs to one event loop. The engine's thread adds exchanges with news; the loop takes them
/// when the descriptor is readable. Thread-safe.
class LoopNotifier {
public:
    static Result<std::shared_ptr<LoopNotifier>> create();
    /// Takes ownership of the descriptor.
    explicit LoopNotifier(int event) noexcept : event_(event) {}
    LoopNotifier(const LoopNotifier&) = delete;
    LoopNotifier& operator=(const LoopNotifier&) = delete;
    ~LoopNotifier();

    /// Readable while there is news.
    [[nodiscard]] int descriptor() const noexcept { return event_; }

    /// Swaps `ready`, which must be empty, with the exchanges that have news since the last call.
    void take(std::vector<std::shared_ptr<Exchange>>& ready);
    /// The loop takes no more news. Drops the queued exchanges, which would otherwise keep this
    /// notifier alive.
    void close();

private:
    friend class Engine;
    friend class Exchange;

    void add(std::shared_ptr<Exchange> exchange);
    /// Makes the descriptor readable if there is news. Called once in each round of the engine, so
    /// many streams cost one wake-up.
    void flush();

    const int event_;
    std::mutex mutex_;
    std::vector<std::shared_ptr<Exchange>> ready_;
    bool signalled_ = false;
    bool closed_ = false;
};

}  // namespace polymux::transport
