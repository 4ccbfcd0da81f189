// What other threads ask of an engine.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "file_descriptor.hpp"
#include "polymux/result.hpp"

namespace polymux::transport {

class Exchange;

/// A new eventfd: readable once something was written to it.
Result<FileDescriptor> make_event();
void raise_event(const FileDescriptor& event) noexcept;
void clear_event(const FileDescriptor& event) noexcept;

/// Any thread posts, the engine takes. Both keep it alive.
class Inbox {
public:
    enum class Wish : std::uint8_t {
        start,
        cancel,
        receive,  ///< The consumer has taken what it was given.
        send,     ///< The body, which had run dry, has more.
        close,    ///< Everything shall end; without an exchange.
    };
    struct Item {
        Wish wish;
        std::shared_ptr<Exchange> exchange;
    };

    static Result<std::shared_ptr<Inbox>> create();
    explicit Inbox(FileDescriptor event) : event_(std::move(event)) {}

    void post(Wish wish, std::shared_ptr<Exchange> exchange);
    /// Asks whoever drives the engine to come to an end.
    void stop();

    /// Exchanges `items`, which must be empty, for what was posted. True once `stop` was called.
    bool take(std::vector<Item>& items);

    [[nodiscard]] int descriptor() const noexcept { return event_.get(); }

private:
    FileDescriptor event_;
    std::mutex mutex_;
    std::vector<Item> items_;
    bool stopped_ = false;
};

}  // namespace polymux::transport
