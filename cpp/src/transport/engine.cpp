#include "transport/engine.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
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
    surroundings_.session = std::move(session);
    surroundings_.epoll = epoll_.get();
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
    return lanes_[Transfer::goes_alone(exchange.task(), *surroundings_.session) ? 1 : 0];
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
    const bool is_late = surroundings_.now >= waiting_until_;
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
    const SessionCommon& session = *surroundings_.session;
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
    surroundings_.now = steady_clock::now();
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
    auto made = Transfer::create(surroundings_);
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
        transfer.exchange()->finish_decoding(surroundings_.parser);
    }
    auto failure = transfer.failure_of(code);
    remove(transfer);
    if (try_again(transfer, failure ? &*failure : nullptr)) return;
    end(transfer, std::move(failure));
}

bool Engine::try_again(Transfer& transfer, const Error* failure) {
    const auto delay = transfer.retry_delay(failure, static_cast<std::uint32_t>(random_()));
    if (!delay) return false;
    transfer.wait_until(surroundings_.now + *delay);
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

}  // namespace polymux::transport
