// How a consumer that must not wait learns of news: a descriptor for its event loop.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "polymux/result.hpp"

namespace polymux::transport {

class Exchange;

/// Belongs to one event loop. The engine's thread tells it of exchanges with news; the loop takes
/// them when the descriptor is readable. Thread-safe.
class LoopNotifier {
public:
    static Result<std::shared_ptr<LoopNotifier>> create();
    /// Owns the descriptor from now on.
    explicit LoopNotifier(int event) noexcept : event_(event) {}
    LoopNotifier(const LoopNotifier&) = delete;
    LoopNotifier& operator=(const LoopNotifier&) = delete;
    ~LoopNotifier();

    /// Readable while there is news.
    [[nodiscard]] int descriptor() const noexcept { return event_; }

    /// Exchanges `ready`, which must be empty, for those that have news since they were taken last.
    void take(std::vector<std::shared_ptr<Exchange>>& ready);
    /// Nobody takes any more: forgets what has news, which would hold this for as long.
    void close();

private:
    friend class Engine;
    friend class Exchange;

    void add(std::shared_ptr<Exchange> exchange);
    /// Makes the descriptor readable where there is something to take. Once for each round of the
    /// engine, so that many streams cost one wake-up.
    void flush();

    const int event_;
    std::mutex mutex_;
    std::vector<std::shared_ptr<Exchange>> ready_;
    bool signalled_ = false;
    bool closed_ = false;
};

}  // namespace polymux::transport
