// An exchange as Python holds it, whoever drives it.
#pragma once

#include <atomic>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "free_threads.hpp"
#include "interpreter.hpp"
#include "multipart_body.hpp"
#include "polymux/transport/exchange.hpp"
#include "polymux/transport/session.hpp"

namespace polymux::bindings {

class ExchangeHandle;

/// An event loop, and its exchanges that Python holds. GIL held.
class LoopExchanges {
public:
    explicit LoopExchanges(py::weakref loop) : loop_(std::move(loop)) {}

    /// Before its exchange is started.
    void add(ExchangeHandle* handle);
    /// Nobody finds the handle through its exchange afterwards.
    void remove(ExchangeHandle* handle, transport::Exchange& exchange);
    [[nodiscard]] std::vector<std::shared_ptr<transport::Exchange>> exchanges() const;
    [[nodiscard]] bool is_of(py::handle loop) const { return loop_().is(loop); }

    /// Completes the future that waits for news of the exchange, where one does.
    void tell(const transport::Exchange& exchange);

private:
    mutable GilLock lock_;  // Whoever has found a handle keeps it from going with this.
    std::unordered_set<ExchangeHandle*> handles_;
    const py::weakref loop_;
};

/// GIL held by every caller. One consumer, others are refused; `close` may come from any thread.
class ExchangeHandle {
public:
    /// `lease` where the calling thread drives it; `body` where Python objects are sent.
    ExchangeHandle(std::shared_ptr<transport::Exchange> exchange, transport::Lease lease,
                   py::object body, std::shared_ptr<LoopExchanges> loop_exchanges = {});
    ExchangeHandle(const ExchangeHandle&) = delete;
    ExchangeHandle& operator=(const ExchangeHandle&) = delete;
    /// Cancels what still runs.
    ~ExchangeHandle();

    /// Works until there is news. Raises what a signal's handler, a part of the body or its
    /// callback raises, and ends the exchange then; RuntimeError while another waits.
    void wait_for_news();
    /// The same until the end.
    void wait_for_end();

    /// Ends it, from any thread: the connection is closed.
    void close();

    [[nodiscard]] bool ended() const noexcept { return exchange_->ended(); }
    [[nodiscard]] bool has_news() const noexcept { return exchange_->has_news(); }
    [[nodiscard]] bool is_of(const std::shared_ptr<LoopExchanges>& loop_exchanges) const noexcept {
        return loop_exchanges_ == loop_exchanges;
    }
    [[nodiscard]] bool is_of_loop(py::handle loop) const {
        return loop_exchanges_ != nullptr && loop_exchanges_->is_of(loop);
    }
    [[nodiscard]] transport::Exchange& exchange() const noexcept { return *exchange_; }
    [[nodiscard]] const std::shared_ptr<transport::Exchange>& shared_exchange() const noexcept {
        return exchange_;
    }

    /// (status, HTTP version, header fields as bytes); None before.
    py::object head() const;
    /// (status, header fields, body, tries, elapsed seconds). Only at the end. Raises where there
    /// is no answer.
    py::tuple outcome();
    /// Bytes of a body that is read in pieces; empty where none have come.
    py::bytes take_bytes();

    /// The future to complete when there is news; None takes it back.
    void set_waiter(py::object future);
    /// Takes it back, for whoever completes it; null where there is none.
    py::object take_waiter() noexcept;
    void report_progress();

    /// For the garbage collector: a waiting future leads to who waits for this.
    int traverse(visitproc visit, void* arg) const;
    void clear() noexcept { take_waiter(); }

private:
    template <typename Reached>
    void work_until(const Reached& reached);
    void drive();
    void return_lease() noexcept;
    [[nodiscard]] py::object body() const;
    void drop_body() noexcept;
    void leave_to_parent() noexcept;
    void check_process() const;

    std::shared_ptr<transport::Exchange> exchange_;
    std::shared_ptr<LoopExchanges> loop_exchanges_;
    // The lease is that of who drives; another who closes meanwhile leaves its end to that one.
    transport::Lease lease_;
    std::atomic<bool> driven_ = false;
    std::atomic<bool> closed_ = false;
    std::atomic<bool> waited_for_ = false;
    mutable GilLock lock_;  // For the two that follow.
    py::object body_;
    py::object waiter_;
};

/// Once, when the module is made.
void intern_names_of_futures();

/// Lets go of the bodies of exchanges that nobody holds any more, where those have ended. GIL held.
void reap_finished();

/// Raises what went wrong; `body` may know better. GIL held.
[[noreturn]] void raise_failure(const Error& failure, py::handle body);

}  // namespace polymux::bindings
