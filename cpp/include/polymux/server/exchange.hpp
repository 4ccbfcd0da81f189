// A request that the front has received, and its response.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "polymux/http1/message.hpp"

namespace polymux::server {

class Connection;
class Place;
struct Outbox;

/// An IP address and port; both are empty for Unix sockets.
struct SocketName {
    std::string host;
    std::uint16_t port = 0;
};

/// One request and its response. The front's thread and the application share it, and both keep it
/// alive. One thread of the application at a time may use it.
class Exchange : public std::enable_shared_from_this<Exchange> {
public:
    struct Head {
        std::string_view method;
        std::string_view target;
        std::vector<http1::Field> fields;  ///< In order; names are in lower case.
        bool is_http_1_0 = false;
    };

    /// The part of the body that has arrived since the last call.
    struct Body {
        std::string bytes;
        bool is_complete = false;  ///< Nothing more will come.
        bool is_disconnected =
            false;  ///< The client closed the connection, or the response is complete.
    };

    Exchange(std::shared_ptr<Outbox> outbox, Connection& connection) noexcept
        : outbox_(std::move(outbox)), connection_(&connection) {}
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    [[nodiscard]] const Head& head() const noexcept { return head_; }
    [[nodiscard]] const SocketName& client() const noexcept { return client_; }
    [[nodiscard]] const SocketName& server() const noexcept { return server_; }
    [[nodiscard]] bool is_encrypted() const noexcept { return is_encrypted_; }

    /// The first call answers `Expect: 100-continue`.
    Body take_body();

    /// Writes the status line and the fields, and adds Date and what frames the body. Call it once,
    /// before `write`, which sends them. Returns what is invalid; empty if nothing is.
    [[nodiscard]] std::string_view start(int status, std::span<const http1::Field> fields);
    /// Sends a part of the body. Does nothing after the client disconnects, or after the last part.
    /// Returns false if the body is not as long as Content-Length said: the connection then ends.
    bool write(std::string_view bytes, bool is_last);
    /// Whether little is waiting to be sent. If not, the event `writable` follows.
    [[nodiscard]] bool has_room();
    /// Closes the connection at once.
    void disconnect();

    [[nodiscard]] bool is_started() const noexcept { return is_started_; }
    [[nodiscard]] bool is_ended() const noexcept { return is_ended_; }

private:
    friend class Connection;
    friend class IoThread;

    /// The bytes to send for a part of the body, with the head before the first part.
    std::string framed(std::string_view bytes, bool& is_last, bool& fits);

    const std::shared_ptr<Outbox> outbox_;

    // Written before the application gets the exchange.
    std::string head_bytes_;
    Head head_;
    SocketName client_;
    SocketName server_;
    bool is_encrypted_ = false;
    bool expects_continue_ = false;
    bool wants_keep_alive_ = false;

    // The front's thread uses this.
    Connection* connection_;  ///< Null after the connection has ended.

    // Of the application.
    std::string head_out_;  ///< Waits for the first part of the body.
    std::uint64_t left_bytes_ = 0;
    http1::BodyFraming framing_ = http1::BodyFraming::none;
    bool is_started_ = false;
    bool is_ended_ = false;
    bool closes_ = false;

    std::mutex mutex_;  ///< Guards the following.
    std::string body_;
    std::size_t unsent_bytes_ = 0;
    bool is_complete_ = false;
    bool is_disconnected_ = false;
    bool has_news_ = true;    ///< The application was told that there is something to take.
    bool is_paused_ = false;  ///< The connection reads no more before the body is taken.
    bool wants_room_ = false;
};

/// News for the application.
struct Event {
    enum class Kind : std::uint8_t {
        request,       ///< A new request. A part of its body may have arrived.
        body,          ///< More of the body has arrived.
        disconnected,  ///< The client disconnected before the response was complete.
        writable,      ///< `has_room` is true again.
        refused,       ///< Requests were refused; has no exchange.
    };
    Kind kind;
    std::shared_ptr<Exchange> exchange;
    /// Of a request. Counts its connection until the application has destroyed the event, so that
    /// clients that do not wait for their answer cannot leave any number of requests.
    std::shared_ptr<const Place> place = {};
};

}  // namespace polymux::server
