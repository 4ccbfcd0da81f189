// Runs libcurl's multi interface over epoll. A calling thread or a dedicated thread drives it. It
// handles exchanges and is independent of Python.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <queue>
#include <random>
#include <vector>

#include "file_descriptor.hpp"
#include "polymux/transport/loop_notifier.hpp"
#include "transport/curl.hpp"
#include "transport/mailbox.hpp"
#include "transport/transfer.hpp"

namespace polymux::transport {

/// Used by one thread at a time, except for the mailbox.
class Engine {
public:
    /// `kept_connections`: number of connections that stay open between exchanges.
    static Result<std::unique_ptr<Engine>> create(std::shared_ptr<SessionCommon> session,
                                                  long kept_connections);
    Engine(std::shared_ptr<SessionCommon> session, std::shared_ptr<Mailbox> mailbox,
           FileDescriptor epoll, long kept_connections);
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;
    /// Ends all exchanges.
    ~Engine();

    void start(std::shared_ptr<Exchange> exchange);

    /// Waits at most that long for work and does it. Returns false if a signal arrived instead.
    bool run_once(milliseconds max_wait);

    /// Cancels every exchange. Streams that have ended continue draining.
    void cancel_all(const std::string& message);

    /// Drains for at most that long, and drops connections that are still incomplete.
    void end_draining(milliseconds max_wait);

    [[nodiscard]] const std::shared_ptr<Mailbox>& mailbox() const noexcept { return mailbox_; }
    /// True after the mailbox received a stop command.
    [[nodiscard]] bool stopped() const noexcept { return stopped_; }
    /// True while no exchange runs.
    [[nodiscard]] bool idle() const noexcept { return active_ == 0; }

    /// In a forked child, for the parent's engine: closes the parent's descriptors here and never
    /// touches its other data. A TLS shutdown, for example, would end the parent's connections.
    static void abandon(std::unique_ptr<Engine> engine) noexcept;

private:
    struct Timer {
        steady_clock::time_point at;
        std::uint32_t slot;
        std::uint32_t serial;
        bool operator>(const Timer& other) const noexcept { return at > other.at; }
    };

    /// One of libcurl's multi handles, with its requested timer. Transfers of different multi
    /// handles never share a connection.
    struct Multi {
        Engine* engine = nullptr;
        MultiHandle handle;  ///< Null until first use.
        steady_clock::time_point timer = steady_clock::time_point::max();
        std::size_t draining = 0;  ///< Transfers whose exchange has ended.
    };

    /// The eight bytes of data that epoll stores for a descriptor.
    struct EpollKey {
        std::uint32_t multi;
        curl_socket_t socket;
    };

    static int on_socket(CURL* easy, curl_socket_t socket, int what, void* self, void* known);
    static int on_timer(CURLM* multi, long timeout_ms, void* self);

    Multi& multi_of(const Transfer& transfer) noexcept {
        return multis_[transfer.has_own_connection() ? 1 : 0];
    }
    [[nodiscard]] const Multi& multi_for(const Exchange& exchange) const noexcept;
    bool open(Multi& multi) noexcept;
    bool watch(const Multi& multi, curl_socket_t socket, int what, bool known) noexcept;
    /// Executes posted commands. Returns whether there were any.
    bool read_mailbox();
    void execute(const Mailbox::Item& item);
    void cancel(Exchange& exchange);
    void resume(Exchange& exchange);
    Transfer* free_transfer();
    void begin_try(Transfer& transfer);
    void read_messages();
    void finish_try(Transfer& transfer, CURLcode code);
    /// Reports the end unless already reported, and frees the transfer. After a failure or a resent
    /// request, also libcurl's handle, which would remember both: it counts what it resends, and
    /// stops at five.
    void end(Transfer& transfer, std::optional<Error> failure = {});
    void remove(Transfer& transfer) noexcept;
    /// Returns whether any of libcurl's timers was due.
    bool run_curl_timers();
    void arm(Transfer& transfer);
    void check_deadlines();
    void handle_timeout(Transfer& transfer, const PendingTimeout& timeout);
    [[nodiscard]] int wait_ms(milliseconds max_wait);
    bool defer_while_draining(const std::shared_ptr<Exchange>& exchange);
    void start_deferred();
    void begin(std::shared_ptr<Exchange> exchange);
    bool wait(milliseconds max_wait);
    bool try_again(Transfer& transfer, const Error* failure);
    void flush_notifiers();

    EngineContext context_;
    std::shared_ptr<Mailbox> mailbox_;
    FileDescriptor epoll_;
    std::vector<std::unique_ptr<Transfer>> slots_;  // `multis_` use their handles.
    /// The second is for transfers that need a separate connection.
    std::array<Multi, 2> multis_;
    std::vector<std::uint32_t> free_;
    std::size_t active_ = 0;  // Transfers that run or wait.
    // Exchanges that wait for a draining transfer to free its connection.
    std::vector<std::shared_ptr<Exchange>> deferred_;
    steady_clock::time_point deferred_until_;
    std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
    std::vector<Mailbox::Item> items_;
    std::vector<std::weak_ptr<LoopNotifier>> notifiers_;
    std::mt19937 random_;
    const long kept_connections_;
    bool stopped_ = false;
};

}  // namespace polymux::transport
