// What an engine does each time somebody drives it.
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <limits>

#include "transport/engine.hpp"
#include "transport/failures.hpp"

namespace polymux::transport {

bool Engine::round(milliseconds longest) {
    // What ends at once, such as a request that must not begin, is told before anything is awaited.
    const bool was_asked = read_inbox();
    if (was_asked) flush_ports();
    if (stopped_) return true;
    surroundings_.now = steady_clock::now();
    const bool was_due = run_timers_of_curl();
    // Either may have ended what the caller waits for, who looks between two rounds.
    const bool waited = wait(was_asked || was_due ? milliseconds{0} : longest);
    run_timers_of_curl();
    for (Transfer* const transfer : surroundings_.draining) {
        transfer->counted_as_draining = true;
        ++lane_of(*transfer).draining;
        arm(*transfer);
    }
    surroundings_.draining.clear();
    check_deadlines();
    flush_ports();
    return waited;
}

bool Engine::run_timers_of_curl() {
    bool any = false;
    for (Lane& lane : lanes_) {
        if (lane.timer > surroundings_.now) continue;
        lane.timer = steady_clock::time_point::max();
        int running = 0;
        curl_multi_socket_action(lane.multi.get(), CURL_SOCKET_TIMEOUT, 0, &running);
        any = true;
    }
    if (any) read_messages();
    return any;
}

bool Engine::wait(milliseconds longest) {
    constexpr int most_events = 64;
    std::array<epoll_event, most_events> events;
    const int count = epoll_wait(epoll_.get(), events.data(), most_events, wait_ms(longest));
    surroundings_.now = steady_clock::now();
    for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        const auto watched = std::bit_cast<Watched>(event.data.u64);
        if (watched.socket == inbox_->descriptor()) {
            read_inbox();
            continue;
        }
        int what = 0;
        if ((event.events & EPOLLIN) != 0) what |= CURL_CSELECT_IN;
        if ((event.events & EPOLLOUT) != 0) what |= CURL_CSELECT_OUT;
        if ((event.events & (EPOLLERR | EPOLLHUP)) != 0) what |= CURL_CSELECT_ERR;
        int running = 0;
        CURLM* const multi = lanes_[watched.lane].multi.get();
        curl_multi_socket_action(multi, watched.socket, what, &running);
    }
    if (count > 0) read_messages();
    return count >= 0 || errno != EINTR;
}

int Engine::wait_ms(milliseconds longest) {
    auto until = std::min(lanes_.front().timer, lanes_.back().timer);
    if (!waiting_.empty()) until = std::min(until, waiting_until_);
    if (!timers_.empty()) until = std::min(until, timers_.top().at);
    std::int64_t wait = longest.count() < 0 ? std::numeric_limits<int>::max() : longest.count();
    if (until != steady_clock::time_point::max()) {
        // Rounded up: a wait that ends too early is followed by another.
        const auto left = std::chrono::ceil<milliseconds>(until - surroundings_.now);
        wait = std::clamp<std::int64_t>(left.count(), 0, wait);
    } else if (longest.count() < 0) {
        return -1;
    }
    return static_cast<int>(std::min<std::int64_t>(wait, std::numeric_limits<int>::max()));
}

bool Engine::read_inbox() {
    items_.clear();
    stopped_ = inbox_->take(items_) || stopped_;
    // A list of its own: what is done for one item may post another.
    std::vector<Inbox::Item> items;
    items.swap(items_);
    for (const Inbox::Item& item : items) handle(item);
    const bool had_any = !items.empty();
    items.clear();
    items_.swap(items);
    return had_any;
}

void Engine::handle(const Inbox::Item& item) {
    switch (item.wish) {
        case Inbox::Wish::start:
            start(item.exchange);
            return;
        case Inbox::Wish::cancel:
            cancel(*item.exchange);
            return;
        case Inbox::Wish::close:
            cancel_all("the client was closed");
            return;
        case Inbox::Wish::receive:
        case Inbox::Wish::send:
            resume(*item.exchange);
            return;
    }
}

void Engine::cancel(Exchange& exchange) {
    Transfer* const transfer = exchange.transfer_;
    if (transfer == nullptr) {
        // It waits, or has ended.
        const auto waits = [&exchange](const auto& one) { return one.get() == &exchange; };
        if (std::erase_if(waiting_, waits) > 0) {
            exchange.end({.failure = cancelled("the request was cancelled")});
        }
        return;
    }
    remove(*transfer);
    end(*transfer, cancelled("the request was cancelled"));
}

void Engine::resume(Exchange& exchange) {
    Transfer* const transfer = exchange.transfer_;
    if (transfer == nullptr || transfer->phase() == Phase::backoff) return;
    surroundings_.now = steady_clock::now();
    if (const CURLcode code = transfer->resume(); code != CURLE_OK) {
        finish_try(*transfer, code);
        return;
    }
    arm(*transfer);
    read_messages();
}

void Engine::arm(Transfer& transfer) {
    const auto at = transfer.next_look();
    if (at >= transfer.armed_at) return;
    transfer.armed_at = at;
    timers_.push({.at = at, .slot = transfer.slot, .serial = transfer.serial});
}

/// Deadlines move with every byte. A timer stays where it was armed, and looks then whether there
/// is still time: so bytes cost nothing.
void Engine::check_deadlines() {
    start_waiting();
    if (active_ == 0) {
        timers_ = {};  // Nobody is to be woken for what has ended.
        return;
    }
    while (!timers_.empty() && timers_.top().at <= surroundings_.now) {
        const Timer timer = timers_.top();
        timers_.pop();
        Transfer* const transfer = slots_[timer.slot].get();
        if (transfer == nullptr || transfer->serial != timer.serial) continue;
        transfer->armed_at = steady_clock::time_point::max();
        const auto due = transfer->due();
        if (due && due->at <= surroundings_.now) {
            pass_deadline(*transfer, *due);
        } else {
            arm(*transfer);
        }
    }
}

void Engine::pass_deadline(Transfer& transfer, const Due& due) {
    if (due.name.empty() && transfer.phase() == Phase::backoff) {
        begin_try(transfer);
        return;
    }
    if (!transfer.exchange()) {  // Drained for long enough.
        remove(transfer);
        end(transfer);
        return;
    }
    remove(transfer);
    Error failure = deadline_passed(due.name, due.length, transfer.exchange()->task().request);
    if (try_again(transfer, &failure)) return;
    end(transfer, std::move(failure));
}

void Engine::flush_ports() {
    std::erase_if(ports_, [](const std::weak_ptr<Port>& known) {
        const auto port = known.lock();
        if (port) port->flush();
        return !port;
    });
}

}  // namespace polymux::transport
