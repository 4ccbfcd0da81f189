// Commands from other threads to an engine.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "event_descriptor.hpp"

namespace polymux::transport {

class Exchange;

/// Any thread posts, the engine takes. Both keep it alive.
class Mailbox {
public:
    enum class Command : std::uint8_t {
        start,
        cancel,
        resume_receiving,  ///< The consumer has taken the delivered data.
        resume_sending,    ///< The starved body has more data.
        close_all,         ///< Ends every exchange; has no exchange itself.
    };
    struct Item {
        Command command;
        std::shared_ptr<Exchange> exchange;
    };

    static Result<std::shared_ptr<Mailbox>> create();
    explicit Mailbox(FileDescriptor event) : event_(std::move(event)) {}

    void post(Command command, std::shared_ptr<Exchange> exchange);
    /// Asks the thread that drives the engine to return.
    void stop();

    /// Swaps `items`, which must be empty, with the posted items. Returns true after `stop` was
    /// called.
    bool take(std::vector<Item>& items);

    [[nodiscard]] int descriptor() const noexcept { return event_.get(); }

private:
    FileDescriptor event_;
    std::mutex mutex_;
    std::vector<Item> items_;
    bool stopped_ = false;
};

}  // namespace polymux::transport
