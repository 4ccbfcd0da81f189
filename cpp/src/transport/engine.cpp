#include "transport/engine.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <system_error>
#include <utility>

#include "transport/descriptors.hpp"
#include "transport/failures.hpp"

namespace polymux::transport {

namespace {

constexpr std::size_t kept_handles = 256;

std::uint32_t random_seed() noexcept {
    std::uint32_t bits = 0;
    // If this fails, the only effect is that the jitter is the same in every process.
    [[maybe_unused]] const int filled = getentropy(&bits, sizeof bits);
    return bits;
}

Error system_error(const char* what) {
    return {.code = ErrorCode::internal,
            .message = std::string(what) + ": " + std::generic_category().message(errno),
            .os_errno = errno};
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<SessionCommon> session,
                                               long kept_connections) {
    if (auto ready = initialise_curl(); !ready) return std::move(ready.error());
    close_inherited();
    auto mailbox = Mailbox::create();
    if (!mailbox) return std::move(mailbox.error());
    FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll.is_open()) return system_error("cannot create an epoll descriptor");
    epoll_event event{.events = EPOLLIN, .data = {}};
    event.data.u64 = std::bit_cast<std::uint64_t>(EpollKey{0, (*mailbox)->descriptor()});
    if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, (*mailbox)->descriptor(), &event) != 0) {
        return system_error("cannot add a descriptor to epoll");
    }
    return std::make_unique<Engine>(std::move(session), *std::move(mailbox), std::move(epoll),
                                    kept_connections);
}

Engine::Engine(std::shared_ptr<SessionCommon> session, std::shared_ptr<Mailbox> mailbox,
               FileDescriptor epoll, long kept_connections)
    : mailbox_(std::move(mailbox)),
      epoll_(std::move(epoll)),
      random_(static_cast<std::mt19937::result_type>(random_seed())),
      kept_connections_(kept_connections) {
    context_.session = std::move(session);
    context_.epoll = epoll_.get();
    register_descriptor(epoll_.get());
    for (Multi& multi : multis_) multi.engine = this;
}

Engine::~Engine() {
    cancel_all("the client was closed");
    for (const auto& transfer : slots_) {
        if (transfer && transfer->phase() != Phase::idle) remove(*transfer);
    }
    // Closes the connections, which use members destroyed later.
    for (Multi& multi : multis_) multi.handle.reset();
    unregister_descriptor(epoll_.get());
}

/// Creates libcurl's state for it once, because most engines use only one of them. Returns false if
/// out of memory.
bool Engine::open(Multi& multi) noexcept {
    if (multi.handle) return true;
    multi.handle.reset(curl_multi_init());
    if (!multi.handle) return false;
    CURLM* const handle = multi.handle.get();
    curl_multi_setopt(handle, CURLMOPT_SOCKETFUNCTION, &Engine::on_socket);
    curl_multi_setopt(handle, CURLMOPT_SOCKETDATA, &multi);
    curl_multi_setopt(handle, CURLMOPT_TIMERFUNCTION, &Engine::on_timer);
    curl_multi_setopt(handle, CURLMOPT_TIMERDATA, &multi);
    // If unset, it shrinks with the number of exchanges and closes warm connections.
    curl_multi_setopt(handle, CURLMOPT_MAXCONNECTS, kept_connections_);
    const bool is_shared = &multi == multis_.data();
    curl_multi_setopt(handle, CURLMOPT_PIPELINING,
                      is_shared ? CURLPIPE_MULTIPLEX : CURLPIPE_NOTHING);
    return true;
}

void Engine::abandon(std::unique_ptr<Engine> engine) noexcept {
    close_inherited();
    // Leaked on purpose, with everything that it owns.
    [[maybe_unused]] const Engine* const leaked = engine.release();
}

int Engine::on_socket(CURL*, curl_socket_t socket, int what, void* self, void* known) {
    const auto& multi = *static_cast<Multi*>(self);
    if (!multi.engine->watch(multi, socket, what, known != nullptr)) return -1;
    if (known == nullptr && what != CURL_POLL_REMOVE) {
        curl_multi_assign(multi.handle.get(), socket, self);
    }
    return 0;
}

bool Engine::watch(const Multi& multi, curl_socket_t socket, int what, bool known) noexcept {
    if (what == CURL_POLL_REMOVE) {
        // Fails if the socket is already closed, which is fine.
        if (known) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, nullptr);
        return true;
    }
    const auto number = static_cast<std::uint32_t>(&multi - multis_.data());
    epoll_event event{.events = 0, .data = {}};
    event.data.u64 = std::bit_cast<std::uint64_t>(EpollKey{number, socket});
    if ((what & CURL_POLL_IN) != 0) event.events |= EPOLLIN;
    if ((what & CURL_POLL_OUT) != 0) event.events |= EPOLLOUT;
    const int operation = known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    return epoll_ctl(epoll_.get(), operation, socket, &event) == 0;
}

int Engine::on_timer(CURLM*, long timeout_ms, void* self) {
    static_cast<Multi*>(self)->timer = timeout_ms < 0
                                           ? steady_clock::time_point::max()
                                           : steady_clock::now() + milliseconds(timeout_ms);
    return 0;
}

void Engine::start(std::shared_ptr<Exchange> exchange) {
    const auto same = [&exchange](const std::weak_ptr<LoopNotifier>& notifier) {
        return notifier.lock() == exchange->notifier_;
    };
    if (exchange->notifier_ && std::none_of(notifiers_.begin(), notifiers_.end(), same)) {
        notifiers_.push_back(exchange->notifier_);
    }
    exchange->begin(mailbox_);
    if (!defer_while_draining(exchange)) begin(std::move(exchange));
}

const Engine::Multi& Engine::multi_for(const Exchange& exchange) const noexcept {
    return multis_[Transfer::needs_own_connection(exchange.task(), *context_.session) ? 1 : 0];
}

/// The end of a stream's response arrives right after the event that ends the stream. If nothing
/// else runs, wait briefly for it; otherwise the next request would open a new connection. A
/// request that uses another multi handle needs a new connection anyway.
bool Engine::defer_while_draining(const std::shared_ptr<Exchange>& exchange) {
    constexpr milliseconds max_deferral{5};
    const std::size_t draining = multi_for(*exchange).draining;
    if (draining == 0 || multis_.front().draining + multis_.back().draining != active_)
        return false;
    if (deferred_.empty()) deferred_until_ = steady_clock::now() + max_deferral;
    deferred_.push_back(exchange);
    return true;
}

void Engine::start_deferred() {
    if (deferred_.empty()) return;
    const bool is_late = context_.now >= deferred_until_;
    std::vector<std::shared_ptr<Exchange>> deferred;
    deferred.swap(deferred_);
    for (auto& exchange : deferred) {
        const bool goes_on_waiting = !is_late && multi_for(*exchange).draining > 0;
        if (goes_on_waiting) {
            deferred_.push_back(std::move(exchange));
        } else {
            begin(std::move(exchange));
        }
    }
}

void Engine::begin(std::shared_ptr<Exchange> exchange) {
    if (exchange->cancel_asked_.load(std::memory_order_relaxed)) {
        exchange->end({.failure = cancelled("the request was canceled")});
        return;
    }
    const SessionCommon& session = *context_.session;
    if (session.no_certificates && session.options.verify &&
        exchange->task().request.url.starts_with("https:")) {
        exchange->end({.failure = session.no_certificates});
        return;
    }
    Transfer* const transfer = free_transfer();
    if (transfer == nullptr) {
        exchange->end({.failure = no_memory()});
        return;
    }
    context_.now = steady_clock::now();
    ++active_;
    transfer->begin(std::move(exchange));
    begin_try(*transfer);
}

Transfer* Engine::free_transfer() {
    if (!free_.empty()) {
        Transfer* const found = slots_[free_.back()].get();
        free_.pop_back();
        if (found != nullptr) return found;
    }
    auto made = Transfer::create(context_);
    if (!made) return nullptr;
    const auto empty = std::find(slots_.begin(), slots_.end(), nullptr);
    made->slot = static_cast<std::uint32_t>(empty - slots_.begin());
    if (empty != slots_.end()) {
        *empty = std::move(made);
        return empty->get();
    }
    slots_.push_back(std::move(made));
    return slots_.back().get();
}

void Engine::begin_try(Transfer& transfer) {
    if (const auto until = transfer.hold_off_until()) {
        transfer.wait_until(*until);
        arm(transfer);
        return;
    }
    if (auto configured = transfer.configure(); !configured) {
        end(transfer, std::move(configured.error()));
        return;
    }
    Multi& multi = multi_of(transfer);
    if (!open(multi) || curl_multi_add_handle(multi.handle.get(), transfer.handle()) != CURLM_OK) {
        end(transfer, no_memory());
        return;
    }
    arm(transfer);
}

void Engine::remove(Transfer& transfer) noexcept {
    if (transfer.phase() == Phase::backoff) return;
    curl_multi_remove_handle(multi_of(transfer).handle.get(), transfer.handle());
}

void Engine::end(Transfer& transfer, std::optional<Error> failure) {
    const bool failed = failure.has_value();
    if (transfer.exchange()) transfer.end(std::move(failure));
    if (transfer.counted_as_draining) --multi_of(transfer).draining;
    transfer.reset();
    --active_;
    if (failed || transfer.was_resent() || free_.size() >= kept_handles) {
        slots_[transfer.slot].reset();
    } else {
        free_.push_back(transfer.slot);
    }
}

void Engine::read_messages() {
    for (const Multi& multi : multis_) {
        if (!multi.handle) continue;
        int left = 0;
        while (const CURLMsg* const message = curl_multi_info_read(multi.handle.get(), &left)) {
            if (message->msg != CURLMSG_DONE) continue;
            const CURLcode code = message->data.result;
            void* found = nullptr;
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &found);
            finish_try(*static_cast<Transfer*>(found), code);
        }
    }
}

void Engine::finish_try(Transfer& transfer, CURLcode code) {
    if (!transfer.exchange()) {
        remove(transfer);
        end(transfer);
        return;
    }
    if (transfer.take_stale_connection()) {
        remove(transfer);
        begin_try(transfer);
        return;
    }
    if (code == CURLE_OK && transfer.decodes()) {
        transfer.exchange()->finish_decoding(context_.parser);
    }
    auto failure = transfer.failure_of(code);
    remove(transfer);
    if (try_again(transfer, failure ? &*failure : nullptr)) return;
    end(transfer, std::move(failure));
}

bool Engine::try_again(Transfer& transfer, const Error* failure) {
    const auto delay = transfer.retry_delay(failure, static_cast<std::uint32_t>(random_()));
    if (!delay) return false;
    transfer.exchange()->add_retry(transfer.retry_reason(failure) + "; sent again after " +
                                   seconds_text(*delay));
    transfer.wait_until(context_.now + *delay);
    arm(transfer);
    return true;
}

void Engine::cancel_all(const std::string& message) {
    std::vector<std::shared_ptr<Exchange>> deferred;
    deferred.swap(deferred_);
    for (const auto& exchange : deferred) {
        exchange->end({.failure = cancelled(message)});
    }
    for (const auto& transfer : slots_) {
        if (!transfer || !transfer->exchange()) continue;
        remove(*transfer);
        end(*transfer, cancelled(message));
    }
    flush_notifiers();
}

void Engine::end_draining(milliseconds max_wait) {
    const auto until = steady_clock::now() + max_wait;
    for (auto left = max_wait; !idle() && left.count() > 0;) {
        run_once(left);
        left = std::chrono::ceil<milliseconds>(until - steady_clock::now());
    }
    for (const auto& transfer : slots_) {
        if (!transfer || transfer->phase() != Phase::draining) continue;
        remove(*transfer);
        end(*transfer);
    }
}

bool Engine::run_once(milliseconds max_wait) {
    // Report exchanges that end at once, such as a request that must not begin, before any wait.
    const bool was_asked = read_mailbox();
    if (was_asked) flush_notifiers();
    if (stopped_) return true;
    context_.now = steady_clock::now();
    const bool was_due = run_curl_timers();
    // Do not block after either did something: it may have ended the exchange that the caller
    // waits for, and the caller checks only between two rounds.
    const bool waited = wait(was_asked || was_due ? milliseconds{0} : max_wait);
    run_curl_timers();
    for (Transfer* const transfer : context_.draining) {
        transfer->counted_as_draining = true;
        ++multi_of(*transfer).draining;
        arm(*transfer);
    }
    context_.draining.clear();
    check_deadlines();
    flush_notifiers();
    return waited;
}

bool Engine::run_curl_timers() {
    bool any = false;
    for (Multi& multi : multis_) {
        if (multi.timer > context_.now) continue;
        multi.timer = steady_clock::time_point::max();
        int running = 0;
        curl_multi_socket_action(multi.handle.get(), CURL_SOCKET_TIMEOUT, 0, &running);
        any = true;
    }
    if (any) read_messages();
    return any;
}

bool Engine::wait(milliseconds max_wait) {
    constexpr int max_events = 64;
    std::array<epoll_event, max_events> events;
    const int count = epoll_wait(epoll_.get(), events.data(), max_events, wait_ms(max_wait));
    context_.now = steady_clock::now();
    for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        const std::uint64_t data = event.data.u64;  // Copied: the struct is packed.
        const auto key = std::bit_cast<EpollKey>(data);
        if (key.socket == mailbox_->descriptor()) {
            read_mailbox();
            continue;
        }
        int what = 0;
        if ((event.events & EPOLLIN) != 0) what |= CURL_CSELECT_IN;
        if ((event.events & EPOLLOUT) != 0) what |= CURL_CSELECT_OUT;
        if ((event.events & (EPOLLERR | EPOLLHUP)) != 0) what |= CURL_CSELECT_ERR;
        int running = 0;
        CURLM* const multi = multis_[key.multi].handle.get();
        curl_multi_socket_action(multi, key.socket, what, &running);
    }
    if (count > 0) read_messages();
    return count >= 0 || errno != EINTR;
}

int Engine::wait_ms(milliseconds max_wait) {
    auto until = std::min(multis_.front().timer, multis_.back().timer);
    if (!deferred_.empty()) until = std::min(until, deferred_until_);
    if (!timers_.empty()) until = std::min(until, timers_.top().at);
    std::int64_t wait = max_wait.count() < 0 ? std::numeric_limits<int>::max() : max_wait.count();
    if (until != steady_clock::time_point::max()) {
        // Rounded up, because a wait that ends too early needs another.
        const auto left = std::chrono::ceil<milliseconds>(until - context_.now);
        wait = std::clamp<std::int64_t>(left.count(), 0, wait);
    } else if (max_wait.count() < 0) {
        return -1;
    }
    return static_cast<int>(std::min<std::int64_t>(wait, std::numeric_limits<int>::max()));
}

bool Engine::read_mailbox() {
    items_.clear();
    stopped_ = mailbox_->take(items_) || stopped_;
    // A local list, because handling one item may post another.
    std::vector<Mailbox::Item> items;
    items.swap(items_);
    for (const Mailbox::Item& item : items) execute(item);
    const bool had_any = !items.empty();
    items.clear();
    items_.swap(items);
    return had_any;
}

void Engine::execute(const Mailbox::Item& item) {
    switch (item.command) {
        case Mailbox::Command::start:
            start(item.exchange);
            return;
        case Mailbox::Command::cancel:
            cancel(*item.exchange);
            return;
        case Mailbox::Command::close_all:
            cancel_all("the client was closed");
            return;
        case Mailbox::Command::resume_receiving:
        case Mailbox::Command::resume_sending:
            resume(*item.exchange);
            return;
    }
}

void Engine::cancel(Exchange& exchange) {
    Transfer* const transfer = exchange.transfer_;
    if (transfer == nullptr) {
        // It is deferred, or has ended.
        const auto waits = [&exchange](const auto& one) { return one.get() == &exchange; };
        if (std::erase_if(deferred_, waits) > 0) {
            exchange.end({.failure = cancelled("the request was canceled")});
        }
        return;
    }
    remove(*transfer);
    end(*transfer, cancelled("the request was canceled"));
}

void Engine::resume(Exchange& exchange) {
    Transfer* const transfer = exchange.transfer_;
    if (transfer == nullptr || transfer->phase() == Phase::backoff) return;
    context_.now = steady_clock::now();
    if (const CURLcode code = transfer->resume(); code != CURLE_OK) {
        finish_try(*transfer, code);
        return;
    }
    arm(*transfer);
    read_messages();
}

void Engine::arm(Transfer& transfer) {
    const auto at = transfer.next_check();
    if (at >= transfer.armed_at) return;
    transfer.armed_at = at;
    timers_.push({.at = at, .slot = transfer.slot, .serial = transfer.serial});
}

/// Deadlines move with every byte. A timer stays at its armed time and checks then whether time
/// remains, so bytes cost nothing.
void Engine::check_deadlines() {
    start_deferred();
    if (active_ == 0) {
        timers_ = {};  // Do not wake up for an exchange that has ended.
        return;
    }
    while (!timers_.empty() && timers_.top().at <= context_.now) {
        const Timer timer = timers_.top();
        timers_.pop();
        Transfer* const transfer = slots_[timer.slot].get();
        if (transfer == nullptr || transfer->serial != timer.serial) continue;
        transfer->armed_at = steady_clock::time_point::max();
        const auto timeout = transfer->next_timeout();
        if (timeout && timeout->at <= context_.now) {
            handle_timeout(*transfer, *timeout);
        } else {
            arm(*transfer);
        }
    }
}

void Engine::handle_timeout(Transfer& transfer, const PendingTimeout& timeout) {
    if (timeout.name.empty() && transfer.phase() == Phase::backoff) {
        begin_try(transfer);
        return;
    }
    if (!transfer.exchange()) {  // The time for draining has passed.
        remove(transfer);
        end(transfer);
        return;
    }
    remove(transfer);
    Error failure =
        deadline_passed(timeout.name, timeout.length, transfer.exchange()->task().request);
    if (try_again(transfer, &failure)) return;
    end(transfer, std::move(failure));
}

void Engine::flush_notifiers() {
    std::erase_if(notifiers_, [](const std::weak_ptr<LoopNotifier>& known) {
        const auto notifier = known.lock();
        if (notifier) notifier->flush();
        return !notifier;
    });
}

}  // namespace polymux::transport
