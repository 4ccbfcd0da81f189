// An HTTP/1.1 server: threads receive requests and send responses, the application answers them.
//
//     auto front = Front::start(listener, options);
//     wait_until_readable((*front)->descriptor());
//     (*front)->take(events);
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "polymux/result.hpp"
#include "polymux/server/exchange.hpp"
#include "polymux/server/gate.hpp"

namespace polymux::server {

struct Shared;
class IoThread;

/// Rules by which the front refuses requests. They do not change.
struct FrontRules {
    struct Endpoint {
        std::string path;  ///< Without parameters.
        std::shared_ptr<const EndpointRules> rules;
    };

    std::shared_ptr<const GateRules> gate;
    std::shared_ptr<const KeyTable> keys;
    std::vector<Endpoint> endpoints;
};

/// A request that the front has refused.
struct RefusedRequest {
    int status = 0;
    double duration_s = 0;
    std::string method;
    std::string path;
    std::string request_id;
};

/// Requests that were refused without details.
struct RefusedCount {
    std::string path;
    int status = 0;
    std::uint64_t count = 0;
};

struct RefusedRequests {
    std::vector<RefusedRequest> requests;
    std::vector<RefusedCount> others;  ///< Too many to describe them.
};

struct FrontOptions {
    std::size_t io_threads = 1;
    std::chrono::milliseconds header_timeout{10'000};
    /// How long a connection may stay open without a request.
    std::chrono::milliseconds keep_alive_timeout{10'000};
    /// In this time, a client must accept 256 bytes a second of what waits for it.
    std::chrono::milliseconds write_timeout{60'000};
    std::size_t max_connections = 1024;
    /// The limit of one IPv4 address or /64 network of IPv6. Default: half of `max_connections`,
    /// but unlimited for this machine.
    std::optional<std::size_t> max_connections_per_network = {};
    /// Paths of PEM files: the certificate with its chain, and its key. Empty without TLS.
    std::string tls_certificate = {};
    std::string tls_key = {};
};

class Front {
public:
    /// `listener` is a listening, non-blocking socket, which stays open until the front is
    /// destroyed.
    static Result<std::unique_ptr<Front>> start(int listener, const FrontOptions& options);
    explicit Front(std::shared_ptr<Shared> shared);
    Front(const Front&) = delete;
    Front& operator=(const Front&) = delete;
    /// Closes all connections, and ends the threads.
    ~Front();

    /// Readable while `take` returns events.
    [[nodiscard]] int descriptor() const noexcept;
    /// Swaps `events`, which must be empty, with the news since the last call.
    void take(std::vector<Event>& events);

    /// Refuses further requests by these rules, before the application gets them. Requests to other
    /// paths, and requests while the file of keys has changed, are left to the application.
    void publish(std::shared_ptr<const FrontRules> rules);
    /// Moves what was refused since the last call. The event `refused` announces it, at most ten
    /// times a second.
    void take_refused(RefusedRequests& refused);

    /// Closes each connection after its current response.
    void drain();
    /// Closes all connections now.
    void close_all();
    [[nodiscard]] std::size_t connections() const noexcept;
    /// Bytes that were parsed, or wait to be parsed.
    [[nodiscard]] std::uint64_t received_bytes() const noexcept;
    /// Bytes that came after a response that ended their connection.
    [[nodiscard]] std::uint64_t dropped_bytes() const noexcept;

private:
    const std::shared_ptr<Shared> shared_;
    std::vector<std::unique_ptr<IoThread>> threads_;
};

}  // namespace polymux::server
