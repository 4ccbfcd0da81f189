#include "server/connection.hpp"

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <variant>

#include "ascii.hpp"
#include "server/io_thread.hpp"
#include "server/refusals.hpp"

namespace polymux::server {

namespace {

using std::chrono::milliseconds;

/// Limit of a body that the application has not taken.
constexpr std::size_t max_body_ahead_bytes = std::size_t{256} << 10;
/// Limit of requests behind the current one.
constexpr std::size_t max_ahead_bytes = std::size_t{128} << 10;
/// A reset would discard a response that the client has not read, so unwanted input is dropped.
constexpr milliseconds linger_time{2'000};
constexpr std::size_t max_linger_bytes = std::size_t{4} << 20;
/// A client must accept this many bytes a second of what waits for it.
constexpr std::size_t min_output_bytes_per_s = 256;
/// The application continues when less than this is unsent.
constexpr std::size_t low_water_bytes = std::size_t{16} << 10;
/// A client of HTTP/1.0 that closes its side has usually disconnected.
constexpr milliseconds half_closed_time{100};
/// Delays between writes to a half-closed connection, to detect a reset; the last one repeats.
constexpr std::array probe_times{milliseconds{50}, milliseconds{100}, milliseconds{300},
                                 milliseconds{600}, milliseconds{5'000}};
constexpr std::string_view interim_response = "HTTP/1.1 100 Continue\r\n\r\n";
/// A chunk with a comment, which readers of event streams ignore.
constexpr std::string_view comment_chunk = "3\r\n:\n\n\r\n";
constexpr std::string_view event_stream_field = "content-type: text/event-stream";
constexpr std::size_t max_pieces_at_once = 16;
/// One read of a head, with what follows. Bodies are read with the whole buffer, after the
/// application has begun to take them.
constexpr std::size_t first_read_bytes = std::size_t{64} << 10;

double unix_time_s() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

}  // namespace

Connection::Connection(IoThread& thread, FileDescriptor socket, std::shared_ptr<const Place> place,
                       SocketName client, SocketName server)
    : thread_(thread),
      socket_(std::move(socket)),
      place_(std::move(place)),
      client_(std::move(client)),
      server_(std::move(server)) {
    const std::shared_ptr<TlsContext>& context = thread_.tls();
    if (context == nullptr) return;
    tls_ = std::make_unique<TlsStream>(*context, socket_.get());
    state_ = State::handshake;
}

Connection::~Connection() {
    if (tls_ != nullptr) tls_->shut_down();
    thread_.deadlines().remove(*this);
    lose();
}

void Connection::open() {
    epoll_event watched{};
    watched.events = watched_ = EPOLLIN;
    watched.data.ptr = this;
    if (::epoll_ctl(thread_.epoll(), EPOLL_CTL_ADD, socket_.get(), &watched) != 0) {
        state_ = State::closed;
        return;
    }
    const bool has_place = place_->is_within_limits();
    if (!has_place && tls_ != nullptr) {
        state_ = State::closed;  // A response would need a handshake.
        return;
    }
    if (!has_place) {
        push(early_refusal(503));
        close_soon();
        send();
    }
    phase_at_ = thread_.now() + thread_.options().header_timeout;
    set_deadline();
}

void Connection::on_ready(std::uint32_t events) {
    if ((events & (EPOLLERR | EPOLLHUP)) != 0 && (events & EPOLLIN) == 0) {
        state_ = State::closed;
        return;
    }
    if (state_ == State::handshake) {
        shake_hands();
    } else {
        if ((events & EPOLLOUT) != 0) send();
        if ((events & EPOLLOUT) != 0 && tls_wants_output_ && !is_closed()) receive();
        // The state may have changed since epoll has seen the input.
        if ((events & EPOLLIN) != 0 && reads_ && !is_closed()) receive();
    }
    watch_events();
    set_deadline();
}

void Connection::shake_hands() {
    const TlsStream::Status status = tls_->shake_hands();
    tls_wants_output_ = status == TlsStream::Status::wants_output;
    if (status == TlsStream::Status::done) {
        state_ = State::head;
        phase_at_ = thread_.now() + thread_.options().header_timeout;
        receive();
    } else if (status == TlsStream::Status::ended || status == TlsStream::Status::failed) {
        state_ = State::closed;
    }
}

/// OpenSSL may hold input that epoll does not know of, so this reads all of it.
void Connection::receive_encrypted() {
    tls_wants_output_ = false;
    while (reads_ && !is_closed()) {
        const TlsStream::Outcome outcome = tls_->receive(thread_.buffer());
        switch (outcome.status) {
            case TlsStream::Status::done:
                take({thread_.buffer().data(), outcome.bytes});
                break;
            case TlsStream::Status::wants_input:
                return;
            case TlsStream::Status::wants_output:
                tls_wants_output_ = true;  // For an answer to a message of TLS itself.
                return;
            case TlsStream::Status::ended:
            case TlsStream::Status::failed:
                // Clients do not close only one side of TLS.
                state_ = State::closed;
                return;
        }
    }
}

void Connection::receive() {
    if (tls_ != nullptr) {
        receive_encrypted();
        return;
    }
    std::vector<char>& buffer = thread_.buffer();
    const bool is_large = state_ == State::body || state_ == State::lingering;
    const std::size_t size = is_large ? buffer.size() : first_read_bytes;
    const ssize_t count = ::recv(socket_.get(), buffer.data(), size, 0);
    if (count > 0) {
        take({buffer.data(), static_cast<std::size_t>(count)});
    } else if (count == 0) {
        on_end_of_input();
    } else if (errno != EAGAIN && errno != EINTR) {
        state_ = State::closed;
    }
}

void Connection::take(std::string_view input) {
    std::atomic<std::uint64_t>& counter = state_ == State::lingering
                                              ? thread_.shared().dropped_bytes
                                              : thread_.shared().received_bytes;
    counter.fetch_add(input.size(), std::memory_order_relaxed);
    switch (state_) {
        case State::head:
        case State::body:
            if (has_ahead()) {
                add_ahead(input);
            } else {
                ahead_ = parse(input);
                after_parsing();
            }
            break;
        case State::answering:
            add_ahead(input);
            limit_ahead();
            break;
        case State::lingering:
            drop(input.size());
            break;
        case State::handshake:
        case State::sending:
        case State::closing:
        case State::closed:
            break;
    }
}

void Connection::add_ahead(std::string_view input) {
    ahead_.erase(0, std::exchange(ahead_begin_, 0));
    ahead_ += input;
}

void Connection::limit_ahead() {
    if (ahead_.size() - ahead_begin_ <= max_ahead_bytes) return;
    // A client that disconnects is then noticed only by writes.
    reads_ = false;
    if (probe_at_ == never) watch_half_closed();
}

void Connection::drop(std::size_t size_bytes) {
    dropped_bytes_ += size_bytes;
    if (dropped_bytes_ <= max_linger_bytes) return;
    if (has_output()) {
        reads_ = false;
    } else {
        state_ = State::closed;
    }
}

std::string_view Connection::parse(std::string_view input) {
    if (parser_ == nullptr) parser_ = thread_.take_parser();
    const std::string_view rest = read_message(input);
    if (parser_->idle()) thread_.give_back(std::move(parser_));
    return rest;
}

void Connection::after_parsing() {
    limit_ahead();
    if (refusal_ != nullptr) answer_refusal();
}

std::string_view Connection::read_message(std::string_view input) {
    bool is_new = false;
    while (true) {
        switch (parser_->next(input)) {
            case http1::Event::need_input:
                if (state_ == State::head && !parser_->idle() && !has_header_deadline_) {
                    has_header_deadline_ = true;
                    phase_at_ = thread_.now() + thread_.options().header_timeout;
                }
                // A request that is rejected for its head costs no more than this.
                if (is_new && refusal_ == nullptr) pause_reading();
                return {};
            case http1::Event::head:
                if (!begin_request()) return {};
                is_new = true;
                break;
            case http1::Event::body:
                add_body(parser_->body());
                break;
            case http1::Event::end:
                end_request();
                return input;
            case http1::Event::refused: {
                const http1::Refusal reason = parser_->refusal();
                // No path has such a method.
                const bool is_method = reason == http1::Refusal::unknown_method;
                refuse(is_method ? 405 : http1::status_of(reason), reason);
                return {};
            }
        }
    }
}

bool Connection::begin_request() {
    const http1::MessageHead& head = parser_->head();
    if (head.target_form == http1::TargetForm::absolute) {
        refuse(400, http1::Refusal::invalid_target);  // For proxies.
        return false;
    }
    exchange_ = std::make_shared<Exchange>(thread_.outbox(), *this);
    Exchange& exchange = *exchange_;
    std::size_t size = head.method.size() + head.target.size();
    for (std::size_t i = 0; i < head.fields.size(); ++i) {
        size += head.fields[i].name.size() + head.fields[i].value.size();
    }
    exchange.head_bytes_.reserve(size);
    const auto keep = [&bytes = exchange.head_bytes_](std::string_view text) {
        const std::size_t begin = bytes.size();
        bytes += text;
        return std::string_view(bytes).substr(begin);
    };
    exchange.head_.method = keep(head.method);
    exchange.head_.target = keep(head.target);
    exchange.head_.is_http_1_0 = head.minor_version == 0;
    exchange.head_.fields.reserve(head.fields.size());
    for (std::size_t i = 0; i < head.fields.size(); ++i) {
        const http1::Field field = head.fields[i];
        const std::string_view name = keep(field.name);
        char* const letters =
            exchange.head_bytes_.data() + (name.data() - exchange.head_bytes_.data());
        std::transform(name.begin(), name.end(), letters, lower);
        exchange.head_.fields.push_back({.name = name, .value = keep(field.value)});
    }
    exchange.client_ = client_;
    exchange.server_ = server_;
    exchange.is_encrypted_ = tls_ != nullptr;
    exchange.expects_continue_ = head.expects_continue;
    // Programs of HTTP/1.0 that ask for another request on the connection are not worth the code.
    exchange.wants_keep_alive_ = head.keep_alive && head.minor_version == 1;
    if (auto refusal = refusal_of(exchange)) {
        refusal_ = std::make_unique<GateRefusal>(*std::move(refusal));
    } else {
        // The event is delivered at the end of this round, with what follows of the body.
        thread_.tell({.kind = Event::Kind::request, .exchange = exchange_, .place = place_});
    }
    state_ = State::body;
    phase_at_ = never;
    has_header_deadline_ = false;
    return true;
}

std::optional<GateRefusal> Connection::refusal_of(const Exchange& exchange) {
    const RulesByPath* const by_path = thread_.rules();
    if (by_path == nullptr) return std::nullopt;
    const Exchange::Head& head = exchange.head();
    const std::string_view path = head.target.substr(0, head.target.find('?'));
    const std::size_t* const index = by_path->find(path);
    if (index == nullptr) return std::nullopt;
    const FrontRules& rules = by_path->rules();
    GateDecision decision = admit(*rules.gate, *rules.endpoints[*index].rules, rules.keys.get(),
                                  {.method = head.method,
                                   .target_bytes = head.target.size(),
                                   .fields = head.fields,
                                   .is_http_1_0 = head.is_http_1_0,
                                   .client_host = exchange.client().host,
                                   .server_host = exchange.server().host},
                                  unix_time_s());
    auto* const refusal = std::get_if<GateRefusal>(&decision);
    if (refusal == nullptr) return std::nullopt;
    const bool depends_on_keys = refusal->status == 401 || refusal->status == 403;
    if (depends_on_keys && !rules.keys->is_current()) return std::nullopt;
    refused_endpoint_ = *index;
    return std::move(*refusal);
}

void Connection::answer_refusal() {
    const std::unique_ptr<GateRefusal> refusal = std::exchange(refusal_, nullptr);
    const std::shared_ptr<Exchange> exchange = exchange_;
    const Exchange::Head& head = exchange->head();
    const RefusalResponse response(*refusal, head.fields,
                                   *thread_.rules()->rules().endpoints[refused_endpoint_].rules);
    [[maybe_unused]] const std::string_view problem =
        exchange->start(refusal->status, response.fields());
    bool is_last = true;
    bool fits = true;
    Command command{.kind = Command::Kind::write, .is_last = true};
    command.bytes = exchange->framed(response.body(), is_last, fits);
    command.closes = exchange->closes_;
    thread_.note({.status = refusal->status,
                  .duration_s = std::chrono::duration<double>(Clock::now() - thread_.now()).count(),
                  .method = std::string(head.method),
                  .path = std::string(head.target.substr(0, head.target.find('?'))),
                  .request_id = response.request_id()});
    write(command);
}

void Connection::add_body(std::string_view bytes) {
    Exchange& exchange = *exchange_;
    bool is_news = false;
    {
        const std::scoped_lock lock(exchange.mutex_);
        exchange.body_ += bytes;
        is_news = !std::exchange(exchange.has_news_, true);
        if (exchange.body_.size() >= max_body_ahead_bytes) {
            exchange.is_paused_ = true;
            reads_ = false;
        }
    }
    if (is_news) thread_.tell({.kind = Event::Kind::body, .exchange = exchange_});
}

void Connection::pause_reading() {
    const std::scoped_lock lock(exchange_->mutex_);
    exchange_->is_paused_ = true;
    reads_ = false;
}

void Connection::end_request() {
    Exchange& exchange = *exchange_;
    bool is_news = false;
    {
        const std::scoped_lock lock(exchange.mutex_);
        exchange.is_complete_ = true;
        exchange.is_paused_ = false;
        is_news = !std::exchange(exchange.has_news_, true);
    }
    if (is_news) thread_.tell({.kind = Event::Kind::body, .exchange = exchange_});
    state_ = State::answering;
    reads_ = true;
}

void Connection::resume_reading() {
    if (state_ != State::body) return;
    reads_ = true;
    if (tls_ != nullptr) receive();
    watch_events();
    set_deadline();
}

void Connection::send_continue() {
    if (state_ != State::body || has_started_) return;
    push(std::string(interim_response));
    send();
    watch_events();
    set_deadline();
}

void Connection::write(Command& command) {
    if (!std::exchange(has_started_, true)) {
        const std::string_view head =
            std::string_view(command.bytes).substr(0, command.bytes.find("\r\n\r\n"));
        sends_events_ = exchange_->framing_ == http1::BodyFraming::chunked &&
                        head.find(event_stream_field) != std::string_view::npos;
    }
    push(std::move(command.bytes));
    if (command.is_last) {
        closes_after_response_ = command.closes;
        end_response();
    }
    send();
    watch_events();
    set_deadline();
}

void Connection::end_response() {
    exchange_->connection_ = nullptr;
    exchange_.reset();
    probe_at_ = never;
    if (state_ == State::body) {
        linger();
    } else if (closes_after_response_ || thread_.is_draining()) {
        close_soon();
    } else {
        // The next response waits too: a client that reads none of them gets no more.
        state_ = State::sending;
        reads_ = false;
    }
}

void Connection::next_request() {
    state_ = State::head;
    has_started_ = sends_events_ = false;
    probes_ = 0;
    reads_ = !has_ahead();
    phase_at_ = thread_.now() + thread_.options().keep_alive_timeout;
    if (has_ahead()) {
        thread_.repeat(*this);
    } else if (is_half_closed_) {
        close_soon();
    }
}

void Connection::parse_ahead() {
    if (state_ != State::head || !has_ahead()) return;
    std::string input = std::exchange(ahead_, {});
    const std::size_t begin = std::exchange(ahead_begin_, 0);
    reads_ = true;
    const std::string_view rest = parse(std::string_view(input).substr(begin));
    if (!rest.empty()) {
        // Many small requests wait here, so the rest is not copied for each of them.
        ahead_begin_ = input.size() - rest.size();
        ahead_ = std::move(input);
    }
    after_parsing();
    if (is_half_closed_) {
        reads_ = false;
        if (state_ == State::answering) {
            watch_half_closed();
        } else if (state_ == State::head || state_ == State::body) {
            state_ = State::closed;  // The rest can never arrive.
        }
    }
    watch_events();
    set_deadline();
}

void Connection::on_end_of_input() {
    is_half_closed_ = true;
    reads_ = false;
    if (state_ == State::answering || (state_ == State::head && has_ahead())) {
        if (state_ == State::answering) watch_half_closed();
    } else if (state_ == State::head || state_ == State::lingering) {
        close_soon();
    } else {
        state_ = State::closed;
    }
}

void Connection::watch_half_closed() {
    const bool is_http_1_0 = exchange_ != nullptr && exchange_->head().is_http_1_0;
    probes_ = 0;
    probe_at_ = thread_.now() + (is_http_1_0 ? half_closed_time : probe_times.front());
}

void Connection::probe() {
    if (exchange_ == nullptr) return;
    if (exchange_->head().is_http_1_0) {
        if (is_half_closed_) state_ = State::closed;
        return;
    }
    if (!has_output()) {
        if (!has_started_) {
            push(std::string(interim_response));
        } else if (sends_events_) {
            push(std::string(comment_chunk));
        }
        send();
    }
    probes_ = std::min<std::uint8_t>(probes_ + 1, probe_times.size() - 1);
    probe_at_ = thread_.now() + probe_times.at(probes_);
}

void Connection::on_due(TimePoint now) {
    if (now >= phase_at_) {
        phase_at_ = never;
        if (state_ == State::head && parser_ != nullptr) {
            refuse(408);
        } else if (state_ == State::head) {
            close_soon();
        } else if (state_ == State::lingering || state_ == State::handshake) {
            state_ = State::closed;
        }
    }
    if (now >= output_at_ && has_output()) {
        const std::uint64_t taken = acknowledged_bytes();
        const auto time_ms = static_cast<std::uint64_t>(thread_.options().write_timeout.count());
        if (taken < taken_at_check_ + min_output_bytes_per_s * time_ms / 1'000) {
            state_ = State::closed;
        } else {
            taken_at_check_ = taken;
            output_at_ = now + thread_.options().write_timeout;
        }
    }
    if (now >= probe_at_) {
        probe_at_ = never;
        probe();
    }
    watch_events();
    set_deadline();
}

void Connection::refuse(int status, http1::Refusal reason) {
    refusal_.reset();
    if (exchange_ != nullptr) {
        const bool has_started = has_started_;
        lose();
        if (has_started) {
            close_soon();
            return;
        }
    }
    push(early_refusal(status, reason));
    if (status == 408) {
        close_soon();  // All input was read, so no reset discards the response.
    } else {
        linger();
    }
    send();
}

void Connection::drain() {
    const bool is_between = state_ == State::head || state_ == State::sending;
    if (state_ == State::handshake) {
        state_ = State::closed;
    } else if (is_between && parser_ == nullptr && !has_ahead()) {
        close_soon();
    }
    watch_events();
    set_deadline();
}

void Connection::linger() {
    state_ = State::lingering;
    reads_ = true;
    ahead_ = {};
    ahead_begin_ = 0;
    phase_at_ = never;
    if (is_half_closed_) close_soon();
}

void Connection::close_soon() {
    state_ = has_output() ? State::closing : State::closed;
    reads_ = false;
    phase_at_ = never;
}

void Connection::lose() {
    if (exchange_ == nullptr) return;
    exchange_->connection_ = nullptr;
    {
        const std::scoped_lock lock(exchange_->mutex_);
        exchange_->is_disconnected_ = true;
    }
    thread_.tell({.kind = Event::Kind::disconnected, .exchange = std::move(exchange_)});
    exchange_.reset();
}

void Connection::push(std::string bytes) {
    if (!bytes.empty()) output_.push_back(std::move(bytes));
}

bool Connection::send_some() {
    if (tls_ != nullptr) {
        const std::string_view piece =
            std::string_view(output_[output_begin_]).substr(output_offset_);
        const TlsStream::Outcome outcome = tls_->send(piece);
        if (outcome.status == TlsStream::Status::done) {
            advance(outcome.bytes);
            return true;
        }
        if (outcome.status == TlsStream::Status::failed ||
            outcome.status == TlsStream::Status::ended) {
            state_ = State::closed;
        }
        return false;
    }
    std::array<iovec, max_pieces_at_once> pieces{};
    const std::size_t count = std::min(output_.size() - output_begin_, pieces.size());
    for (std::size_t i = 0; i < count; ++i) {
        std::string& piece = output_[output_begin_ + i];
        const std::size_t offset = i == 0 ? output_offset_ : 0;
        pieces.at(i) = {.iov_base = piece.data() + offset, .iov_len = piece.size() - offset};
    }
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    if (sent < 0) {
        if (errno == EINTR) return true;
        if (errno != EAGAIN) state_ = State::closed;
        return false;
    }
    advance(static_cast<std::size_t>(sent));
    return true;
}

void Connection::send() {
    while (has_output() && send_some()) {
    }
    if (has_output()) {
        if (output_at_ == never) {
            taken_at_check_ = acknowledged_bytes();
            output_at_ = thread_.now() + thread_.options().write_timeout;
        }
        return;
    }
    output_.clear();
    output_begin_ = 0;
    output_at_ = never;
    if (state_ == State::closing) state_ = State::closed;
    if (state_ == State::sending) next_request();
    if (state_ == State::lingering) {
        phase_at_ = thread_.now() + linger_time;
        dropped_bytes_ = 0;
        reads_ = true;
        if (tls_ != nullptr) tls_->shut_down();
        ::shutdown(socket_.get(), SHUT_WR);
    }
}

void Connection::advance(std::size_t sent_bytes) {
    sent_bytes_ += sent_bytes;
    std::size_t left = sent_bytes;
    while (left > 0) {
        std::string& piece = output_[output_begin_];
        const std::size_t of_piece = std::min(left, piece.size() - output_offset_);
        left -= of_piece;
        output_offset_ += of_piece;
        if (output_offset_ < piece.size()) break;
        piece = {};
        output_offset_ = 0;
        ++output_begin_;
    }
    if (exchange_ == nullptr) return;
    bool is_writable = false;
    {
        const std::scoped_lock lock(exchange_->mutex_);
        // Interim responses are not counted.
        exchange_->unsent_bytes_ -= std::min(sent_bytes, exchange_->unsent_bytes_);
        if (exchange_->wants_room_ && exchange_->unsent_bytes_ <= low_water_bytes) {
            exchange_->wants_room_ = false;
            is_writable = true;
        }
    }
    if (is_writable) thread_.tell({.kind = Event::Kind::writable, .exchange = exchange_});
}

std::uint64_t Connection::acknowledged_bytes() const noexcept {
    int queued = 0;  // In the kernel.
    if (::ioctl(socket_.get(), SIOCOUTQ, &queued) != 0) queued = 0;
    const std::uint64_t written = tls_ == nullptr ? sent_bytes_ : tls_->written_bytes();
    return written - std::min(written, static_cast<std::uint64_t>(queued));
}

void Connection::watch_events() {
    if (is_closed()) return;
    epoll_event watched{};
    const bool wants_output = has_output() || tls_wants_output_;
    // OpenSSL reads nothing before it can write; watching the input would never wait then.
    const bool wants_input = reads_ && (!tls_wants_output_ || state_ == State::handshake);
    watched.events = (wants_input ? EPOLLIN : 0U) | (wants_output ? EPOLLOUT : 0U);
    watched.data.ptr = this;
    if (watched.events == watched_) return;
    watched_ = watched.events;
    if (::epoll_ctl(thread_.epoll(), EPOLL_CTL_MOD, socket_.get(), &watched) != 0)
        state_ = State::closed;
}

void Connection::set_deadline() {
    if (is_closed()) return;
    thread_.deadlines().set(*this, std::min({phase_at_, output_at_, probe_at_}));
}

}  // namespace polymux::server
