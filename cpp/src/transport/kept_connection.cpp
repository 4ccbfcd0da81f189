// A connection that was used before may be closed by the server in the moment of the next request.
// What the kernel knows of it then tells whether the server can have read that request: only where
// it cannot is the request sent again.
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "transport/failures.hpp"
#include "transport/tcp_facts.hpp"
#include "transport/transfer.hpp"

namespace polymux::transport {

namespace {

/// How long a reset may take to follow an end. Whoever waits holds up all others of the thread, so
/// that it is done only where the request has just been sent.
constexpr milliseconds reset_wait{5};
constexpr milliseconds just_sent{200};
/// Within what a server closes after a stream that is going to.
constexpr milliseconds rest{50};
constexpr milliseconds between_rests{1000};
constexpr milliseconds longest_until_closed{1000};
constexpr milliseconds believed_for{60'000};

/// Whether the peer has ended the connection.
bool has_ended(curl_socket_t socket) noexcept {
    char byte = 0;
    return ::recv(socket, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) == 0;
}

}  // namespace

/// libcurl sends a request again by itself when a connection that it used before turns out to be
/// closed. That is right only where the server has seen nothing of it.
bool Transfer::may_send_again(int local_port) {
    if (std::exchange(asked_before_, true) && sent_all_ && !peer_had_nothing_ && !repeatable()) {
        own_failure_ = error_of({.code = CURLE_GOT_NOTHING, .detail = {}, .connected = true},
                                exchange_->task().request, exchange_->task().deadlines);
        return false;
    }
    peer_had_nothing_ = sent_all_ = false;
    long new_connections = 0;
    leave_socket();
    curl_easy_getinfo(handle(), CURLINFO_NUM_CONNECTS, &new_connections);
    socket_ = surroundings_.socket_at(local_port);
    if (const auto found = surroundings_.sockets.find(socket_);
        found != surroundings_.sockets.end() && found->second.user == nullptr) {
        SocketUse& use = found->second;
        use.user = this;
        use.local_port = local_port;
        use.kept = new_connections == 0;
        if (use.kept) use.before = tcp_facts(socket_);
    }
    if (new_connections == 0 && is_spoiled()) {
        spoiled_ = true;
        return false;
    }
    last_sent_ = surroundings_.now;
    phase_ = Phase::sending;
    if (sends_at_once()) {
        sent_all(surroundings_.now);
    } else {
        received_before_ = tcp_facts(socket_).received_bytes;
    }
    return true;
}

/// A kept connection on which the server has something to say before it was asked, or which it has
/// closed: whatever comes over it next would be taken for the answer. Over TLS there may be
/// tickets, which are no answer.
bool Transfer::is_spoiled() const noexcept {
    const auto found = surroundings_.sockets.find(socket_);
    if (found == surroundings_.sockets.end() || found->second.user != this) return false;
    char byte = 0;
    const auto count = ::recv(socket_, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
    if (count > 0) return url_.starts_with("http:");
    return count == 0 || (errno != EAGAIN && errno != EINTR);
}

/// Before an answer has begun, a kept connection closes: what had the peer of the request?
void Transfer::socket_closes(curl_socket_t socket, const SocketUse& use) noexcept {
    peer_had_nothing_ = false;
    if (!use.kept || head_bytes_ > 0) return;
    const TcpFacts facts = tcp_facts(socket);
    if (use.before.sent_bytes > 0 && facts.sent_bytes == use.before.sent_bytes) {
        peer_had_nothing_ = true;  // Not a byte has left.
        return;
    }
    // A reset alone says nothing: it may come from whoever has read all of it.
    if (detail_[0] != '\0') return;
    // The peer's end of the connection acknowledges all that it received: where it came first, and
    // acknowledges nothing of the request, the peer had given up before.
    if (use.before.acknowledged_bytes > 0 &&
        facts.acknowledged_bytes == use.before.acknowledged_bytes) {
        peer_had_nothing_ = true;
        return;
    }
    // Where the end is followed by a reset, a part of the request was there unread, or came later
    // (RFC 2525, 2.17). Over HTTP/2 that may be something else of ours.
    if (!has_ended(socket)) return;
    const SessionCommon& session = *surroundings_.session;
    if (!url_.starts_with("http:") && session.multiplexes.load(std::memory_order_relaxed)) return;
    const bool just_now = surroundings_.now - last_sent_ < just_sent;
    peer_had_nothing_ = is_reset(socket, just_now ? reset_wait : milliseconds{0});
}

/// Some servers, llama.cpp's among them, close after each stream though they promise to keep the
/// connection, and first read what came meanwhile, so that nobody can tell whether they worked on
/// it. So the first request that follows a stream at once waits until the server shows what it
/// does; that is known then.
std::optional<steady_clock::time_point> Transfer::rests_until() noexcept {
    const SessionCommon& session = *surroundings_.session;
    if (!surroundings_.stream_ended || repeatable() ||
        session.after_streams.load(std::memory_order_relaxed) != AfterStreams::unknown) {
        return std::nullopt;
    }
    const auto now = surroundings_.now;
    const auto until = *surroundings_.stream_ended + rest;
    if (now >= until) return std::nullopt;
    if (surroundings_.rested && now < *surroundings_.rested + between_rests) return std::nullopt;
    surroundings_.rested = now;
    return until;
}

void Transfer::learn_from_answer() noexcept {
    streamed_ = exchange_->task().reading == Reading::chat;
    const auto found = surroundings_.sockets.find(socket_);
    if (found == surroundings_.sockets.end() || !found->second.stream_ended) return;
    found->second.stream_ended.reset();
    surroundings_.session->after_streams.store(AfterStreams::keeps, std::memory_order_relaxed);
}

/// As far as is known: it may have been a restart, so that what was learned is tried anew.
bool Transfer::server_closes_after_streams() const noexcept {
    SessionCommon& session = *surroundings_.session;
    if (session.after_streams.load(std::memory_order_relaxed) != AfterStreams::closes) return false;
    const auto last = session.closed_after_stream.load(std::memory_order_relaxed);
    if (surroundings_.now - last < believed_for) return true;
    session.after_streams.store(AfterStreams::unknown, std::memory_order_relaxed);
    return false;
}

void Surroundings::learn_from_end(curl_socket_t socket, const SocketUse& use) noexcept {
    if (!use.stream_ended || now - *use.stream_ended > longest_until_closed) return;
    if (has_ended(socket)) {
        session->closed_after_stream.store(now, std::memory_order_relaxed);
        session->after_streams.store(AfterStreams::closes, std::memory_order_relaxed);
    }
}

/// A connection that is kept has no user: whoever closes it later tells nobody of this exchange.
void Transfer::leave_socket() noexcept {
    const auto found = surroundings_.sockets.find(socket_);
    if (found != surroundings_.sockets.end() && found->second.user == this) {
        found->second.user = nullptr;
        if (std::exchange(streamed_, false)) {
            found->second.stream_ended = surroundings_.stream_ended = surroundings_.now;
        }
    }
    socket_ = CURL_SOCKET_BAD;
}

}  // namespace polymux::transport
