// One easy handle: its options, its callbacks, and where its exchange stands.
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
    waiting,  ///< For the answer's first byte.
    receiving,
    draining,  ///< The exchange has ended well; what remains of the answer frees the connection.
    backoff,   ///< Before another try.
};

/// A deadline, with its name and length for messages. Without a name it is no failure.
struct PendingTimeout {
    steady_clock::time_point at;
    std::string_view name;
    milliseconds length{0};
};

/// Bodies of text up to this size go out in one system call with the request's head.
inline constexpr std::size_t small_body_bytes = std::size_t{64} << 10U;

/// Used by the engine's thread alone, and again for one exchange after another.
class Transfer {
public:
    /// Null where memory is out.
    static std::unique_ptr<Transfer> create(EngineContext& context);
    Transfer(EasyHandle easy, EngineContext& context) : easy_(std::move(easy)), context_(context) {}
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;
    ~Transfer();

    [[nodiscard]] CURL* handle() const noexcept { return easy_.get(); }
    [[nodiscard]] Phase phase() const noexcept { return phase_; }
    [[nodiscard]] const std::shared_ptr<Exchange>& exchange() const noexcept { return exchange_; }
    /// The next thing that time will bring.
    [[nodiscard]] std::optional<PendingTimeout> next_timeout() const;
    /// When to look at `next_timeout` again at the latest: whatever happens until then, it is not
    /// earlier.
    [[nodiscard]] steady_clock::time_point next_check() const;
    /// True where it has its connection to itself, in the current try.
    [[nodiscard]] bool has_own_connection() const noexcept { return own_connection_; }
    /// Whether a try that began now would have its connection to itself.
    static bool needs_own_connection(const Task& task, const SessionCommon& session) noexcept;
    /// True where the answer is a chat stream, and one it can be.
    [[nodiscard]] bool decodes() const noexcept;

    /// Takes an exchange on.
    void begin(std::shared_ptr<Exchange> exchange);
    /// Sets the options for the next try.
    Result<void> configure();
    /// Goes on where a callback paused. What was held back is read at once; where that fails,
    /// libcurl says so here alone, and goes on.
    [[nodiscard]] CURLcode resume() noexcept;

    /// True where a try has ended before it began, over a connection that is closed now: it is
    /// begun anew, and does not count.
    bool take_stale_connection() noexcept;
    /// What a try that libcurl has ended came to; none where there is an answer.
    std::optional<Error> failure_of(CURLcode code);
    /// Time until the next try, where there is to be one.
    std::optional<milliseconds> retry_delay(const Error* failure, std::uint32_t random) const;
    void wait_until(steady_clock::time_point when) {
        phase_ = Phase::backoff;
        until_ = when;
    }
    /// Ends the exchange, which this no longer knows afterwards.
    void end(std::optional<Error> failure);
    /// Ready for another exchange.
    void reset() noexcept;

    /// Before a try: until when it rests, where a stream has just ended over a connection that it
    /// may get and nobody knows yet whether the server will close that.
    std::optional<steady_clock::time_point> hold_off_until() noexcept;
    /// The socket that its request went over closes.
    void on_socket_closed(curl_socket_t socket, const SocketUse& use) noexcept;

    /// For the engine: the slot, and whether a timer is armed for it.
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

    // Of the exchange.
    steady_clock::time_point began_;
    unsigned tries_ = 0;

    // Of the current try.
    steady_clock::time_point try_began_;
    steady_clock::time_point last_sent_;
    steady_clock::time_point last_received_;
    steady_clock::time_point last_chunk_;
    steady_clock::time_point until_;     // Of draining and backoff.
    std::uint64_t received_before_ = 0;  // On its connection; of a body that goes in pieces.
    bool own_connection_ = false;
    bool any_chunk_ = false;
    bool paused_ = false;  // For somebody here: no fault of the server.
    bool sent_all_ = false;
    bool send_attempted_ = false;  // libcurl has begun to send once in this try.
    bool peer_got_nothing_ = false;
    bool head_complete_ = false;
    bool got_informational_ =
        false;  // An answer before the answer has come whole, and nothing since.
    bool stale_connection_ = false;           // The kept connection was no good.
    bool streamed_ = false;                   // Its answer is a stream.
    curl_socket_t socket_ = CURL_SOCKET_BAD;  // That the request went over last.
    ResponseHead head_in_progress_;
    std::size_t field_count_ = 0;
    std::size_t head_bytes_ = 0;
    std::shared_ptr<const ResponseHead> head_;
    std::string collected_;
    std::size_t drained_bytes_ = 0;
    std::size_t text_offset_ = 0;
    std::optional<Error> own_failure_;  // Why a callback stopped the transfer.

    std::string url_;  // That libcurl has.
    HeaderChain header_nodes_;
    std::array<char, CURL_ERROR_SIZE> detail_{};
};

}  // namespace polymux::transport
