// Where exchanges run: engines that a calling thread drives, and one thread for all the others.
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

/// What all exchanges of a session share.
struct SessionOptions {
    /// "Name: value" each, sent with every request that has no field of that name itself: who asks,
    /// and the key.
    std::vector<std::string> headers = {};
    std::string proxy = {};     ///< URL; empty: none. The environment is never asked.
    std::string no_proxy = {};  ///< Hosts that are reached without it, with commas between them.
    std::string certificates = {};  ///< File of certificates to trust (PEM); empty: the system's.
    /// File of the certificate to show to the server, with its key (PEM); empty: none.
    std::string client_certificate = {};
    bool verify = true;  ///< False: any certificate will do.
    bool http2 = true;   ///< Where a server offers it over TLS.
    bool reuse = true;   ///< False: a connection has one exchange, and ends with it.
    /// The server keeps the promise of an `Idempotency-Key` once an answer has this field.
    std::string idempotent_field = "Polymux-Version";
};

/// Why `Lease::run` came back.
enum class RunResult : std::uint8_t {
    news,         ///< The exchange has some.
    interrupted,  ///< A signal came.
    timed_out,
};

class Lease;

/// Thread-safe. After a fork the child has no connection and no thread of its parent.
class Session {
public:
    explicit Session(SessionOptions options);
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    /// Closes.
    ~Session();

    /// A warm engine, else a new one.
    Result<Lease> lease();

    /// Starts an exchange on the session's thread, which begins with the first. News goes to the
    /// exchange's notifier.
    Result<void> start(const std::shared_ptr<Exchange>& exchange);

    /// Ends everything on its thread and closes all connections but those of leases, which close
    /// theirs when they end. Later calls of the others fail. Waits at most `max_wait` for the
    /// thread.
    void close(milliseconds max_wait = milliseconds{2000}) noexcept;

    /// True once the server has said that a repeated request does no harm.
    [[nodiscard]] bool repeatable() const noexcept;

private:
    friend class Lease;
    struct State;
    std::shared_ptr<State> state();

    std::shared_ptr<SessionCommon> common_;
    std::atomic<std::shared_ptr<State>*> state_;  // Owned; replaced in a forked child.
};

/// The use of an engine by one thread at a time, with the connections it keeps. Given back at the
/// end; what still runs in it then is cancelled.
class Lease {
public:
    Lease() noexcept;
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&& other) noexcept;
    ~Lease();

    [[nodiscard]] explicit operator bool() const noexcept { return engine_ != nullptr; }
    /// True where the end has nothing to cancel and nothing to wait for.
    [[nodiscard]] bool idle() const noexcept;
    void start(const std::shared_ptr<Exchange>& exchange);
    /// Works until there is news of the exchange, a signal, or `max_wait` has passed.
    RunResult run(const Exchange& exchange, milliseconds max_wait);
    /// Gives the engine back. A stream that has ended gets up to 20 ms for the rest of its answer,
    /// with which its connection is free for the next; else that is closed.
    void end() noexcept;

private:
    friend class Session;
    Lease(std::unique_ptr<Engine> engine, std::shared_ptr<Session::State> state) noexcept;

    std::unique_ptr<Engine> engine_;
    std::shared_ptr<Session::State> state_;  // Where the engine goes back to.
};

}  // namespace polymux::transport
