// Where exchanges run: engines driven by calling threads, and one I/O thread for all other
// exchanges.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "polymux/transport/exchange.hpp"

namespace polymux::transport {

class Engine;
struct SessionCommon;

/// Options that all exchanges of a session share.
struct SessionOptions {
    /// "Name: value" each, sent with every request that does not set the same field: for example
    /// the client's name and the API key.
    std::vector<std::string> headers = {};
    std::string proxy = {};         ///< URL; empty: none. Proxy environment variables are ignored.
    std::string no_proxy = {};      ///< Hosts reached without the proxy, separated by commas.
    std::string certificates = {};  ///< File of trusted certificates (PEM); empty: the system's.
    /// File of the client certificate with its key (PEM); empty: none.
    std::string client_certificate = {};
    bool verify = true;  ///< False: accept any certificate.
    bool http2 = true;   ///< If a server offers it over TLS.
    bool reuse = true;   ///< False: use each connection for one exchange only.
    /// A response with this field shows that the server supports `Idempotency-Key`.
    std::string idempotent_field = "Polymux-Version";
};

/// Why `Lease::run` returned.
enum class RunResult : std::uint8_t {
    news,         ///< The exchange has news.
    interrupted,  ///< A signal arrived.
    timed_out,
};

class Lease;

/// Thread-safe. After a fork, the child uses no connection and no thread of its parent.
class Session {
public:
    explicit Session(SessionOptions options);
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    ~Session();

    /// Returns a warm engine, or a new one.
    Result<Lease> lease();

    /// Starts an exchange on the session's thread; the first call starts the thread. News goes to
    /// the exchange's notifier.
    Result<void> start(const std::shared_ptr<Exchange>& exchange);

    /// Ends all exchanges on the session's thread and closes all connections except those of
    /// leases, which close theirs when they end. Later calls of the other functions fail. Waits at
    /// most `max_wait` for the thread.
    void close(milliseconds max_wait = milliseconds{2000}) noexcept;

    /// True after the server has stated that a repeated request is safe.
    [[nodiscard]] bool repeatable() const noexcept;

private:
    friend class Lease;
    struct State;
    std::shared_ptr<State> state();

    std::shared_ptr<SessionCommon> common_;
    std::atomic<std::shared_ptr<State>*> state_;  // Owned; replaced in a forked child.
};

/// Use of an engine and its connections by one thread at a time. Destruction returns the engine and
/// cancels exchanges that still run in it.
class Lease {
public:
    Lease() noexcept;
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&& other) noexcept;
    ~Lease();

    [[nodiscard]] explicit operator bool() const noexcept { return engine_ != nullptr; }
    /// True if the end has nothing to cancel or wait for.
    [[nodiscard]] bool idle() const noexcept;
    void start(const std::shared_ptr<Exchange>& exchange);
    /// Runs until the exchange has news, a signal arrives, or `max_wait` has passed.
    RunResult run(const Exchange& exchange, milliseconds max_wait);
    /// Returns the engine. A stream that has ended gets up to 20 ms to receive the rest of its
    /// response, which frees the connection for the next exchange; otherwise the connection is
    /// closed.
    void end() noexcept;

private:
    friend class Session;
    Lease(std::unique_ptr<Engine> engine, std::shared_ptr<Session::State> state) noexcept;

    std::unique_ptr<Engine> engine_;
    std::shared_ptr<Session::State> state_;  // The session that owns the engine.
};

}  // namespace polymux::transport
