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

std::uint32_t random_bits() noexcept {
    std::uint32_t bits = 0;
    // Without it the jitter is the same in every process, and nothing worse.
    [[maybe_unused]] const int filled = getentropy(&bits, sizeof bits);
    return bits;
}

Error of_system(const char* what) {
    return {.code = ErrorCode::internal,
            .message = std::string(what) + ": " + std::generic_category().message(errno),
            .os_errno = errno};
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<SessionCommon> session,
                                               long kept_connections) {
    if (auto ready = initialise_curl(); !ready) return std::move(ready.error());
    close_inherited();
    auto inbox = Inbox::create();
    if (!inbox) return std::move(inbox.error());
    FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll.is_open()) return of_system("no epoll descriptor");
    epoll_event event{.events = EPOLLIN, .data = {}};
    event.data.u64 = std::bit_cast<std::uint64_t>(Watched{0, (*inbox)->descriptor()});
    if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, (*inbox)->descriptor(), &event) != 0) {
        return of_system("epoll takes no descriptor");
    }
    return std::make_unique<Engine>(std::move(session), *std::move(inbox), std::move(epoll),
                                    kept_connections);
}

Engine::Engine(std::shared_ptr<SessionCommon> session, std::shared_ptr<Inbox> inbox,
               FileDescriptor epoll, long kept_connections)
    : inbox_(std::move(inbox)),
      epoll_(std::move(epoll)),
      random_(static_cast<std::mt19937::result_type>(random_bits())),
      kept_connections_(kept_connections) {
    context_.session = std::move(session);
    context_.epoll = epoll_.get();
    own(epoll_.get());
    for (Lane& lane : lanes_) lane.engine = this;
}

Engine::~Engine() {
    cancel_all("the client was closed");
    for (const auto& transfer : slots_) {
        if (transfer && transfer->phase() != Phase::idle) remove(*transfer);
    }
    // Closes the connections, which needs what is destroyed after this.
    for (Lane& lane : lanes_) lane.multi.reset();
    disown(epoll_.get());
}

/// Makes what libcurl needs for it, once: most engines use one lane alone. False where memory is
/// out.
bool Engine::open(Lane& lane) noexcept {
    if (lane.multi) return true;
    lane.multi.reset(curl_multi_init());
    if (!lane.multi) return false;
    CURLM* const handle = lane.multi.get();
    curl_multi_setopt(handle, CURLMOPT_SOCKETFUNCTION, &Engine::on_socket);
    curl_multi_setopt(handle, CURLMOPT_SOCKETDATA, &lane);
    curl_multi_setopt(handle, CURLMOPT_TIMERFUNCTION, &Engine::on_timer);
    curl_multi_setopt(handle, CURLMOPT_TIMERDATA, &lane);
    // Unset, it follows the number of exchanges down, and closes warm connections.
    curl_multi_setopt(handle, CURLMOPT_MAXCONNECTS, kept_connections_);
    const bool is_shared = &lane == lanes_.data();
    curl_multi_setopt(handle, CURLMOPT_PIPELINING,
                      is_shared ? CURLPIPE_MULTIPLEX : CURLPIPE_NOTHING);
    return true;
}

void Engine::abandon(std::unique_ptr<Engine> engine) noexcept {
    close_inherited();
    // Leaked on purpose, with all that it owns.
    [[maybe_unused]] const Engine* const leaked = engine.release();
}

int Engine::on_socket(CURL*, curl_socket_t socket, int what, void* self, void* known) {
    const auto& lane = *static_cast<Lane*>(self);
    if (!lane.engine->watch(lane, socket, what, known != nullptr)) return -1;
    if (known == nullptr && what != CURL_POLL_REMOVE) {
        curl_multi_assign(lane.multi.get(), socket, self);
    }
    return 0;
}

bool Engine::watch(const Lane& lane, curl_socket_t socket, int what, bool known) noexcept {
    if (what == CURL_POLL_REMOVE) {
        // Fails where the socket is closed already, which is as well.
        if (known) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, nullptr);
        return true;
    }
    const auto number = static_cast<std::uint32_t>(&lane - lanes_.data());
    epoll_event event{.events = 0, .data = {}};
    event.data.u64 = std::bit_cast<std::uint64_t>(Watched{number, socket});
    if ((what & CURL_POLL_IN) != 0) event.events |= EPOLLIN;
    if ((what & CURL_POLL_OUT) != 0) event.events |= EPOLLOUT;
    const int operation = known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    return epoll_ctl(epoll_.get(), operation, socket, &event) == 0;
}

int Engine::on_timer(CURLM*, long timeout_ms, void* self) {
    static_cast<Lane*>(self)->timer = timeout_ms < 0
                                          ? steady_clock::time_point::max()
                                          : steady_clock::now() + milliseconds(timeout_ms);
    return 0;
}

void Engine::start(std::shared_ptr<Exchange> exchange) {
    const auto same = [&exchange](const std::weak_ptr<Port>& port) {
        return port.lock() == exchange->port_;
    };
    if (exchange->port_ && std::none_of(ports_.begin(), ports_.end(), same)) {
        ports_.push_back(exchange->port_);
    }
    exchange->begin(inbox_);
    if (!better_wait(exchange)) begin(std::move(exchange));
}

const Engine::Lane& Engine::lane_for(const Exchange& exchange) const noexcept {
    return lanes_[Transfer::goes_alone(exchange.task(), *context_.session) ? 1 : 0];
}

/// The end of a stream's answer comes right behind the event that ends the stream. Where nothing
/// else is at work, that is awaited for a moment: else the next request would open a connection of
/// its own. Of another lane it would need one anyway.
bool Engine::better_wait(const std::shared_ptr<Exchange>& exchange) {
    constexpr milliseconds longest{5};
    const std::size_t draining = lane_for(*exchange).draining;
    if (draining == 0 || lanes_.front().draining + lanes_.back().draining != active_) return false;
    if (waiting_.empty()) waiting_until_ = steady_clock::now() + longest;
    waiting_.push_back(exchange);
    return true;
}

void Engine::start_waiting() {
    if (waiting_.empty()) return;
    const bool is_late = context_.now >= waiting_until_;
    std::vector<std::shared_ptr<Exchange>> waited;
    waited.swap(waiting_);
    for (auto& exchange : waited) {
        const bool goes_on_waiting = !is_late && lane_for(*exchange).draining > 0;
        if (goes_on_waiting) {
            waiting_.push_back(std::move(exchange));
        } else {
            begin(std::move(exchange));
        }
    }
}

void Engine::begin(std::shared_ptr<Exchange> exchange) {
    if (exchange->cancel_asked_.load(std::memory_order_relaxed)) {
        exchange->end({.failure = cancelled("the request was cancelled")});
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
    if (const auto until = transfer.rests_until()) {
        transfer.wait_until(*until);
        arm(transfer);
        return;
    }
    if (auto configured = transfer.configure(); !configured) {
        end(transfer, std::move(configured.error()));
        return;
    }
    Lane& lane = lane_of(transfer);
    if (!open(lane) || curl_multi_add_handle(lane.multi.get(), transfer.handle()) != CURLM_OK) {
        end(transfer, no_memory());
        return;
    }
    arm(transfer);
}

void Engine::remove(Transfer& transfer) noexcept {
    if (transfer.phase() == Phase::backoff) return;
    curl_multi_remove_handle(lane_of(transfer).multi.get(), transfer.handle());
}

void Engine::end(Transfer& transfer, std::optional<Error> failure) {
    if (transfer.exchange()) transfer.end(std::move(failure));
    if (transfer.counted_as_draining) --lane_of(transfer).draining;
    transfer.reset();
    --active_;
    if (free_.size() >= kept_handles) {
        slots_[transfer.slot].reset();
    } else {
        free_.push_back(transfer.slot);
    }
}

void Engine::read_messages() {
    for (const Lane& lane : lanes_) {
        if (!lane.multi) continue;
        int left = 0;
        while (const CURLMsg* const message = curl_multi_info_read(lane.multi.get(), &left)) {
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
    if (transfer.take_spoiled()) {
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
    transfer.wait_until(context_.now + *delay);
    arm(transfer);
    return true;
}

void Engine::cancel_all(const std::string& message) {
    std::vector<std::shared_ptr<Exchange>> waited;
    waited.swap(waiting_);
    for (const auto& exchange : waited) {
        exchange->end({.failure = cancelled(message)});
    }
    for (const auto& transfer : slots_) {
        if (!transfer || !transfer->exchange()) continue;
        remove(*transfer);
        end(*transfer, cancelled(message));
    }
    flush_ports();
}

void Engine::end_draining(milliseconds longest) {
    const auto until = steady_clock::now() + longest;
    for (auto left = longest; !idle() && left.count() > 0;) {
        round(left);
        left = std::chrono::ceil<milliseconds>(until - steady_clock::now());
    }
    for (const auto& transfer : slots_) {
        if (!transfer || transfer->phase() != Phase::draining) continue;
        remove(*transfer);
        end(*transfer);
    }
}

bool Engine::round(milliseconds longest) {
    // What ends at once, such as a request that must not begin, is told before anything is awaited.
    const bool was_asked = read_inbox();
    if (was_asked) flush_ports();
    if (stopped_) return true;
    context_.now = steady_clock::now();
    const bool was_due = run_timers_of_curl();
    // Either may have ended what the caller waits for, who looks between two rounds.
    const bool waited = wait(was_asked || was_due ? milliseconds{0} : longest);
    run_timers_of_curl();
    for (Transfer* const transfer : context_.draining) {
        transfer->counted_as_draining = true;
        ++lane_of(*transfer).draining;
        arm(*transfer);
    }
    context_.draining.clear();
    check_deadlines();
    flush_ports();
    return waited;
}

bool Engine::run_timers_of_curl() {
    bool any = false;
    for (Lane& lane : lanes_) {
        if (lane.timer > context_.now) continue;
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
    context_.now = steady_clock::now();
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
        const auto left = std::chrono::ceil<milliseconds>(until - context_.now);
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
    context_.now = steady_clock::now();
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
    while (!timers_.empty() && timers_.top().at <= context_.now) {
        const Timer timer = timers_.top();
        timers_.pop();
        Transfer* const transfer = slots_[timer.slot].get();
        if (transfer == nullptr || transfer->serial != timer.serial) continue;
        transfer->armed_at = steady_clock::time_point::max();
        const auto due = transfer->due();
        if (due && due->at <= context_.now) {
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
