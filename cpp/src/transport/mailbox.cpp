#include "transport/mailbox.hpp"

#include <sys/eventfd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace polymux::transport {

Result<FileDescriptor> make_event() {
    FileDescriptor event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event.is_open()) {
        return Error{.code = ErrorCode::internal,
                     .message = "cannot create an event descriptor: " +
                                std::generic_category().message(errno),
                     .os_errno = errno};
    }
    return event;
}

void raise_event(const FileDescriptor& event) noexcept {
    const std::uint64_t one = 1;
    // Fails only at a count of 2^64 - 1, and the descriptor is readable then.
    [[maybe_unused]] const auto written = ::write(event.get(), &one, sizeof one);
}

void clear_event(const FileDescriptor& event) noexcept {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto read = ::read(event.get(), &count, sizeof count);
}

Result<std::shared_ptr<Mailbox>> Mailbox::create() {
    auto event = make_event();
    if (!event) return std::move(event.error());
    return std::make_shared<Mailbox>(*std::move(event));
}

void Mailbox::post(Command command, std::shared_ptr<Exchange> exchange) {
    const std::scoped_lock lock(mutex_);
    items_.push_back({.command = command, .exchange = std::move(exchange)});
    if (items_.size() == 1) raise_event(event_);
}

void Mailbox::stop() {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    raise_event(event_);
}

bool Mailbox::take(std::vector<Item>& items) {
    const std::scoped_lock lock(mutex_);
    if (items_.empty() && !stopped_) return false;
    clear_event(event_);
    items.swap(items_);
    return stopped_;
}

}  // namespace polymux::transport
