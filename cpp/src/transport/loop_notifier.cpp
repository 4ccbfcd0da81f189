#include "polymux/transport/loop_notifier.hpp"

#include <unistd.h>

#include <utility>

#include "polymux/transport/exchange.hpp"
#include "transport/mailbox.hpp"

namespace polymux::transport {

Result<std::shared_ptr<LoopNotifier>> LoopNotifier::create() {
    auto event = make_event();
    if (!event) return std::move(event.error());
    return std::make_shared<LoopNotifier>(event->release());
}

LoopNotifier::~LoopNotifier() {
    const FileDescriptor closed(event_);
}

void LoopNotifier::take(std::vector<std::shared_ptr<Exchange>>& ready) {
    const std::scoped_lock lock(mutex_);
    if (signalled_) {
        std::uint64_t count = 0;
        [[maybe_unused]] const auto read = ::read(event_, &count, sizeof count);
        signalled_ = false;
    }
    ready.swap(ready_);
    for (const auto& exchange : ready) exchange->queued_ = false;
}

void LoopNotifier::close() {
    std::vector<std::shared_ptr<Exchange>>
        forgotten;  // Destroyed after unlocking; this may free the notifier.
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    forgotten.swap(ready_);
}

void LoopNotifier::add(std::shared_ptr<Exchange> exchange) {
    const std::scoped_lock lock(mutex_);
    if (closed_) return;
    if (std::exchange(exchange->queued_, true)) return;
    ready_.push_back(std::move(exchange));
}

void LoopNotifier::flush() {
    const std::scoped_lock lock(mutex_);
    if (ready_.empty() || signalled_) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(event_, &one, sizeof one);
    signalled_ = true;
}

}  // namespace polymux::transport
