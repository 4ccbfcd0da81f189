// One easy handle: its options, its callbacks, and the state of its exchange.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "polymux/transport/exchange.hpp"
#include "transport/curl.hpp"
#include "transport/engine_context.hpp"

namespace polymux::transport {

class Setter;

enum class Phase : std::uint8_t {
    idle,
    connecting,
    sending,
    waiting,  ///< For the first byte of the response.
    receiving,
    draining,  ///< The exchange has succeeded; reading the rest of the response frees the
               ///< connection.
    backoff,   ///< Before another attempt.
};

/// A deadline, with its name and length for messages. Without a name, its expiry is not a failure.
struct PendingTimeout {
    steady_clock::time_point at;
    std::string_view name;
    milliseconds length{0};
};

/// Text bodies up to this size are sent in one system call with the request's head.
inline constexpr std::size_t small_body_bytes = std::size_t{64} << 10U;

/// Used only by the engine's thread, and reused for consecutive exchanges.
class Transfer {
public:
    /// Returns null if out of memory.
    static std::unique_ptr<Transfer> create(EngineContext& context);
    Transfer(EasyHandle easy, EngineContext& context) : easy_(std::move(easy)), context_(context) {}
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;
    ~Transfer();

    [[nodiscard]] CURL* handle() const noexcept { return easy_.get(); }
    [[nodiscard]] Phase phase() const noexcept { return phase_; }
    [[nodiscard]] const std::shared_ptr<Exchange>& exchange() const noexcept { return exchange_; }
    /// The next deadline.
    [[nodiscard]] std::optional<PendingTimeout> next_timeout() const;
    /// When to check `next_timeout` again at the latest: it cannot become earlier until then.
    [[nodiscard]] steady_clock::time_point next_check() const;
    /// True if the current attempt has a separate connection.
    [[nodiscard]] bool has_own_connection() const noexcept { return own_connection_; }
    /// Whether an attempt that began now would get a separate connection.
    static bool needs_own_connection(const Task& task, const SessionCommon& session) noexcept;
    /// True if the task is a chat stream, and the response can be one.
    [[nodiscard]] bool decodes() const noexcept;

    /// Starts an exchange.
    void begin(std::shared_ptr<Exchange> exchange);
    /// Sets the options for the next attempt.
    Result<void> configure();
    /// Resumes after a callback paused. Reads held-back data at once. If that fails, only this
    /// return value reports it, and libcurl continues.
    [[nodiscard]] CURLcode resume() noexcept;

    /// True if an attempt failed before it began, because its kept connection was closed. It is
    /// repeated and does not count.
    bool take_stale_connection() noexcept;
    /// The failure of an attempt that libcurl has ended; none if there is a response.
    std::optional<Error> failure_of(CURLcode code);
    /// Delay before the next attempt; none if there is no retry.
    std::optional<milliseconds> retry_delay(const Error* failure, std::uint32_t random) const;
    /// Why `retry_delay` returned one.
    [[nodiscard]] std::string retry_reason(const Error* failure) const {
        return failure == nullptr ? "status " + std::to_string(head_->status) : failure->message;
    }
    void wait_until(steady_clock::time_point when) {
        phase_ = Phase::backoff;
        until_ = when;
    }
    /// True if libcurl has sent the request of an attempt again.
    [[nodiscard]] bool was_resent() const noexcept { return resent_; }
    /// Ends the exchange and drops the reference to it.
    void end(std::optional<Error> failure);
    /// Prepares for another exchange.
    void reset() noexcept;

    /// Call before an attempt. Returns the time to wait until if a stream has just ended on a
    /// connection that the attempt may get, and the server may still close that connection.
    std::optional<steady_clock::time_point> hold_off_until() noexcept;
    /// Called when the socket of its request closes.
    void on_socket_closed(curl_socket_t socket, const SocketUse& use) noexcept;

    /// Used by the engine: the slot, and whether a timer is armed for it.
    std::uint32_t slot = 0;
    std::uint32_t serial = 0;
    bool counted_as_draining = false;
    steady_clock::time_point armed_at = steady_clock::time_point::max();

private:
    friend struct Callbacks;

    bool set_constants();
    Result<void> set_body();
    void set_route(Setter& set);
    curl_slist* header_list();
    std::size_t read(char* buffer, std::size_t size);
    std::size_t read_text(char* buffer, std::size_t size);
    int seek(curl_off_t offset);
    bool before_send(int local_port);
    bool resend_only_refused(bool http2) noexcept;
    void on_log(std::string_view line) noexcept;
    [[nodiscard]] bool was_refused() const noexcept;
    /// Status with which the proxy refused a connection; otherwise 0.
    [[nodiscard]] int proxy_status() const noexcept;
    [[nodiscard]] bool is_connection_stale() const noexcept;
    std::size_t on_header_line(std::string_view line);
    std::size_t on_trailer(std::string_view field, std::size_t line_bytes);
    void on_head();
    std::size_t on_body(std::string_view bytes);
    std::size_t drain(std::size_t bytes) noexcept;
    std::size_t collect(std::string_view bytes);
    std::size_t decode(std::string_view bytes);
    std::size_t fail(Error error);
    [[nodiscard]] bool succeeded() const noexcept;
    [[nodiscard]] bool has_response_byte() const noexcept;
    [[nodiscard]] bool is_buffered() const noexcept;
    [[nodiscard]] bool repeatable() const noexcept;
    [[nodiscard]] bool can_rewind() const noexcept;
    void mark_sent(steady_clock::time_point at) noexcept;
    [[nodiscard]] bool sends_in_one_call() const noexcept;
    void release_socket() noexcept;
    void record_response() noexcept;
    [[nodiscard]] bool server_closes_after_streams() const noexcept;

    EasyHandle easy_;
    EngineContext& context_;
    std::shared_ptr<Exchange> exchange_;
    Phase phase_ = Phase::idle;

    // Start of the exchange.
    steady_clock::time_point began_;
    unsigned tries_ = 0;

    // Start of the current attempt.
    steady_clock::time_point try_began_;
    steady_clock::time_point last_sent_;
    steady_clock::time_point last_received_;
    steady_clock::time_point last_chunk_;
    steady_clock::time_point until_;     // End of draining or backoff.
    std::uint64_t received_before_ = 0;  // On its connection, for a body sent in pieces.
    bool own_connection_ = false;
    bool any_chunk_ = false;
    bool paused_ = false;  // Paused by the client, which is not a fault of the server.
    bool sent_all_ = false;
    bool send_attempted_ = false;  // libcurl has begun to send in this attempt.
    bool resent_ = false;
    bool peer_got_nothing_ = false;
    bool head_complete_ = false;
    bool got_informational_ =
        false;  // An informational response is complete, and nothing followed it yet.
    bool stale_connection_ = false;           // The kept connection was closed.
    bool streamed_ = false;                   // Its response is a stream.
    curl_socket_t socket_ = CURL_SOCKET_BAD;  // Socket of the last request.
    // HTTP/2.
    bool reports_refusals_ = false;               // libcurl's log says what a server refused.
    bool refused_ = false;                        // The log says so of the last request.
    std::uint32_t stream_ = 0;                    // Its stream; 0 for none.
    std::shared_ptr<std::uint32_t> last_stream_;  // See `SocketUse`.
    ResponseHead head_in_progress_;
    std::size_t field_count_ = 0;
    std::size_t head_bytes_ = 0;
    std::shared_ptr<const ResponseHead> head_;
    std::string collected_;
    std::size_t drained_bytes_ = 0;
    std::size_t text_offset_ = 0;
    std::optional<Error> own_failure_;  // Why a callback stopped the transfer.

    std::string url_;  // The URL passed to libcurl.
    HeaderChain header_nodes_;
    std::array<char, CURL_ERROR_SIZE> detail_{};
};

}  // namespace polymux::transport
