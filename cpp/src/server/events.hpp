// News for the application, and commands from it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "event_descriptor.hpp"
#include "polymux/server/exchange.hpp"

namespace polymux::server {

/// Items from threads to one thread, which waits for a descriptor. One wake-up delivers all items
/// that were posted before it.
template <typename Item>
class Mailbox {
public:
    explicit Mailbox(FileDescriptor event) noexcept : event_(std::move(event)) {}

    void post(Item item) {
        const std::scoped_lock lock(mutex_);
        if (is_closed_) return;
        items_.push_back(std::move(item));
        if (items_.size() == 1) raise_event(event_);
    }

    /// Moves all of `items`, and leaves it empty.
    void post_all(std::vector<Item>& items) {
        if (items.empty()) return;
        const std::scoped_lock lock(mutex_);
        if (is_closed_) items.clear();
        if (items.empty()) return;
        const bool was_empty = items_.empty();
        if (was_empty) {
            items_.swap(items);
        } else {
            for (Item& item : items) items_.push_back(std::move(item));
        }
        items.clear();
        if (was_empty) raise_event(event_);
    }

    /// Swaps `items`, which must be empty, with the posted items.
    void take(std::vector<Item>& items) {
        const std::scoped_lock lock(mutex_);
        if (items_.empty()) return;
        clear_event(event_);
        items.swap(items_);
    }

    /// Drops the items and all later ones, which may own this mailbox.
    void close() {
        std::vector<Item> dropped;  // Destroyed without the lock.
        const std::scoped_lock lock(mutex_);
        is_closed_ = true;
        dropped.swap(items_);
    }

    /// Readable while there are items.
    [[nodiscard]] int descriptor() const noexcept { return event_.get(); }

private:
    FileDescriptor event_;
    std::mutex mutex_;
    std::vector<Item> items_;
    bool is_closed_ = false;
};

struct Command {
    enum class Kind : std::uint8_t {
        write,           ///< `bytes`; `is_last` ends the response, `closes` also the connection.
        resume_reading,  ///< The body was taken.
        send_continue,   ///< The application wants the body.
        abort,           ///< Close at once.
        drain,           ///< Close each connection after its response; has no exchange.
        close_all,       ///< Close all connections at once; has no exchange.
        stop,            ///< End the thread; has no exchange.
    };
    Kind kind;
    std::shared_ptr<Exchange> exchange = {};
    std::string bytes = {};
    bool is_last = false;
    bool closes = false;
};

}  // namespace polymux::server
