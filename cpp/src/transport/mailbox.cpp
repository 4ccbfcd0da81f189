#include "transport/mailbox.hpp"

#include <utility>

namespace polymux::transport {

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
