// libcurl's multi interface over epoll, driven by whoever owns it: a calling thread, or a thread of
// its own. It knows exchanges, and nothing of Python.
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

/// One thread at a time, but for the mailbox.
class Engine {
public:
    /// `kept_connections`: how many stay open between exchanges.
    static Result<std::unique_ptr<Engine>> create(std::shared_ptr<SessionCommon> session,
                                                  long kept_connections);
    Engine(std::shared_ptr<SessionCommon> session, std::shared_ptr<Mailbox> mailbox,
           FileDescriptor epoll, long kept_connections);
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;
    /// Ends what still runs.
    ~Engine();

    void start(std::shared_ptr<Exchange> exchange);

    /// Waits for something to do, at most so long, and does it. False where a signal came instead.
    bool run_once(milliseconds max_wait);

    /// Cancels every exchange; streams that have ended go on draining.
    void cancel_all(const std::string& message);

    /// Drains for so long at most, and drops the connections on which more is to come.
    void end_draining(milliseconds max_wait);

    [[nodiscard]] const std::shared_ptr<Mailbox>& mailbox() const noexcept { return mailbox_; }
    /// True once the mailbox was told to stop.
    [[nodiscard]] bool stopped() const noexcept { return stopped_; }
    /// True while nothing is at work.
    [[nodiscard]] bool idle() const noexcept { return active_ == 0; }

    /// In a forked child, of the parent's engine: closes the parent's descriptors here and touches
    /// nothing of it ever again. A shutdown of TLS, say, would end the parent's connections.
    static void abandon(std::unique_ptr<Engine> engine) noexcept;

private:
    struct Timer {
        steady_clock::time_point at;
        std::uint32_t slot;
        std::uint32_t serial;
        bool operator>(const Timer& other) const noexcept { return at > other.at; }
    };

    /// One of libcurl's multi handles, with the timer that it asked for. Transfers of two of them
    /// never share a connection.
    struct Multi {
        Engine* engine = nullptr;
        MultiHandle handle;  ///< Null until it is needed.
        steady_clock::time_point timer = steady_clock::time_point::max();
        std::size_t draining = 0;  ///< Transfers whose exchange has ended.
    };

    /// What epoll keeps for a descriptor, in the eight bytes that it has for it.
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
    /// Does what was asked for; whether anything was.
    bool read_mailbox();
    void execute(const Mailbox::Item& item);
    void cancel(Exchange& exchange);
    void resume(Exchange& exchange);
    Transfer* free_transfer();
    void begin_try(Transfer& transfer);
    void read_messages();
    void finish_try(Transfer& transfer, CURLcode code);
    /// Tells of the end, where nobody has been told yet, and makes the transfer free.
    void end(Transfer& transfer, std::optional<Error> failure = {});
    void remove(Transfer& transfer) noexcept;
    /// Whether any of libcurl's timers was due.
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
    std::vector<std::unique_ptr<Transfer>> slots_;  // Before `multis_`, which know their handles.
    /// The second is for transfers that have their connection to themselves.
    std::array<Multi, 2> multis_;
    std::vector<std::uint32_t> free_;
    std::size_t active_ = 0;  // Transfers that are at work, or wait to be.
    // Exchanges that give a draining transfer the time to free its connection.
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
