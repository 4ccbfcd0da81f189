// One connection of a client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "file_descriptor.hpp"
#include "polymux/http1/parser.hpp"
#include "polymux/server/exchange.hpp"
#include "polymux/server/gate.hpp"
#include "server/connection_limit.hpp"
#include "server/deadlines.hpp"
#include "server/events.hpp"
#include "server/tls.hpp"

namespace polymux::server {

class IoThread;

/// Reads one request after another, and sends their responses. Only its thread uses it.
class Connection {
public:
    Connection(IoThread& thread, FileDescriptor socket, std::shared_ptr<const Place> place,
               SocketName client, SocketName server);
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    /// Tells the application that the client of the current request disconnected.
    ~Connection();

    /// Begins to read; without a place, answers 503.
    void open();

    /// After these calls, `is_closed` says whether the connection has ended: it must be destroyed.
    void on_ready(std::uint32_t events);
    void on_due(TimePoint now);
    void write(Command& command);
    void resume_reading();
    void send_continue();
    /// Parses what has arrived behind the last request.
    void parse_ahead();
    void close() noexcept { state_ = State::closed; }
    /// No more requests after the current one.
    void drain();

    [[nodiscard]] bool is_closed() const noexcept { return state_ == State::closed; }
    [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

    /// For `Deadlines`.
    Deadline deadline;

private:
    enum class State : std::uint8_t {
        handshake,  ///< Of TLS.
        head,       ///< Waits for a request, or reads its head.
        body,       ///< Reads a body. The response may have begun.
        answering,  ///< The request is complete, its response is not.
        sending,    ///< Both are complete; the response is not sent yet.
        lingering,  ///< The response is complete; drops input until the client has read it.
        closing,    ///< Sends the rest, then closes.
        closed,
    };

    void shake_hands();
    void receive();
    void receive_encrypted();
    void take(std::string_view input);
    /// Returns what follows the request that ended in `input`; empty if none did.
    std::string_view parse(std::string_view input);
    std::string_view read_message(std::string_view input);
    /// Continues after `ahead_` has the rest.
    void after_parsing();
    void add_ahead(std::string_view input);
    [[nodiscard]] bool has_ahead() const noexcept { return ahead_begin_ < ahead_.size(); }
    /// Stops to read if enough is ahead.
    void limit_ahead();
    void drop(std::size_t size_bytes);
    bool begin_request();
    /// Decides whether the front answers the request by itself.
    [[nodiscard]] std::optional<GateRefusal> refusal_of(const Exchange& exchange);
    void answer_refusal();
    void add_body(std::string_view bytes);
    void pause_reading();
    void end_request();
    void next_request();
    void refuse(int status, http1::Refusal reason = http1::Refusal::none);
    void on_end_of_input();
    void watch_half_closed();
    void probe();

    void push(std::string bytes);
    void send();
    /// Returns false if the socket takes no more now.
    bool send_some();
    void advance(std::size_t sent_bytes);
    void end_response();
    void linger();
    void close_soon();
    void lose();

    void watch_events();
    void set_deadline();
    [[nodiscard]] std::uint64_t acknowledged_bytes() const noexcept;
    [[nodiscard]] bool has_output() const noexcept { return output_begin_ < output_.size(); }

    IoThread& thread_;
    FileDescriptor socket_;
    const std::shared_ptr<const Place> place_;
    const SocketName client_;
    const SocketName server_;
    std::unique_ptr<TlsStream> tls_;  ///< Null without TLS.
    /// Null between messages: most connections are idle most of the time.
    std::unique_ptr<http1::Parser> parser_;
    State state_ = State::head;
    bool is_half_closed_ = false;
    bool reads_ = true;
    bool closes_after_response_ = false;
    bool has_header_deadline_ = false;
    bool tls_wants_output_ = false;  ///< To continue the handshake.
    bool sends_events_ = false;
    bool has_started_ = false;  ///< The response.
    std::uint8_t probes_ = 0;
    std::uint32_t watched_ = 0;  ///< Events of epoll.
    std::shared_ptr<Exchange> exchange_;
    /// The error for the current request, which the application does not get; null if it gets it.
    std::unique_ptr<GateRefusal> refusal_;
    std::size_t refused_endpoint_ = 0;
    std::string ahead_;  ///< Input behind the current request, from `ahead_begin_` on.
    std::size_t ahead_begin_ = 0;
    std::size_t dropped_bytes_ = 0;
    std::vector<std::string> output_;
    std::size_t output_begin_ = 0;
    std::size_t output_offset_ = 0;
    std::uint64_t sent_bytes_ = 0;
    std::uint64_t taken_at_check_ = 0;
    TimePoint phase_at_ = never;
    TimePoint output_at_ = never;
    TimePoint probe_at_ = never;
};

}  // namespace polymux::server
