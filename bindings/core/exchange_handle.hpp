// A Python handle of an exchange, for any driver.
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

/// An event loop, and its exchanges with Python handles. GIL held.
class LoopExchanges {
public:
    explicit LoopExchanges(py::weakref loop) : loop_(std::move(loop)) {}

    /// Call before the exchange is started.
    void add(ExchangeHandle* handle);
    /// Afterwards, the handle cannot be found through its exchange.
    void remove(ExchangeHandle* handle, transport::Exchange& exchange);
    [[nodiscard]] std::vector<std::shared_ptr<transport::Exchange>> exchanges() const;
    [[nodiscard]] bool is_of(py::handle loop) const { return loop_().is(loop); }

    /// Drops the waiting futures of a closed loop, which would otherwise keep their tasks alive.
    void drop_waiters();

    /// Completes the future that waits for news of the exchange, if any.
    void tell(const transport::Exchange& exchange);

private:
    mutable GilLock lock_;  // Keeps a handle alive for a thread that has found it.
    std::unordered_set<ExchangeHandle*> handles_;
    const py::weakref loop_;
};

/// Every caller holds the GIL. One consumer at a time, others are refused; any thread may call
/// `close`.
class ExchangeHandle {
public:
    /// `lease` if the calling thread drives it; `body` if Python objects are sent.
    ExchangeHandle(std::shared_ptr<transport::Exchange> exchange, transport::Lease lease,
                   py::object body, std::shared_ptr<LoopExchanges> loop_exchanges = {});
    ExchangeHandle(const ExchangeHandle&) = delete;
    ExchangeHandle& operator=(const ExchangeHandle&) = delete;
    /// Cancels the exchange if it still runs.
    ~ExchangeHandle();

    /// Runs until there is news. Raises exceptions of signal handlers, body parts or the callback,
    /// and then ends the exchange. Raises RuntimeError if another thread is waiting.
    void wait_for_news();
    /// The same, until the end.
    void wait_for_end();

    /// Ends it, from any thread, and closes the connection.
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

    /// (status, HTTP version, header fields as bytes); None before the head has arrived.
    py::object head() const;
    /// For each time that the request was sent again: why, as a tuple of str.
    [[nodiscard]] py::tuple retry_reasons() const;
    /// (status, header fields, body, tries, elapsed seconds, retry reasons). Call only at the end.
    /// Raises if there is no response.
    py::tuple outcome();
    /// Bytes of a body read in pieces; empty if none have arrived.
    py::bytes take_bytes();

    /// Sets the future to complete when there is news; None removes it.
    void set_waiter(py::object future);
    /// Removes the future and returns it to be completed; null if no future is set.
    py::object take_waiter() noexcept;
    void report_progress();

    /// For the garbage collector. It must not see the waiting future: an event loop has only weak
    /// references to its tasks, so this reference keeps the task that waits alive.
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
    // The driving thread owns the lease. If another thread closes meanwhile, the driver ends it.
    transport::Lease lease_;
    std::atomic<bool> driven_ = false;
    std::atomic<bool> closed_ = false;
    std::atomic<bool> waited_for_ = false;
    mutable GilLock lock_;  // Guards the following two.
    py::object body_;
    py::object waiter_;
};

/// Call once, at module initialization.
void intern_names_of_futures();

/// Drops the bodies of ended exchanges without a handle. GIL held.
void reap_finished();

/// Raises the failure with its retry reasons; an exception kept by `body` takes precedence. GIL
/// held.
[[noreturn]] void raise_failure(const Error& failure, py::handle body,
                                const py::tuple& retry_reasons);

}  // namespace polymux::bindings
