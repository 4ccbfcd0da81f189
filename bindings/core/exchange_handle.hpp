// An exchange as Python holds it, whoever drives it.
#pragma once

#include <memory>
#include <optional>
#include <unordered_set>

#include "interpreter.hpp"
#include "multipart_body.hpp"
#include "polymux/transport/exchange.hpp"
#include "polymux/transport/session.hpp"

namespace polymux::bindings {

class ExchangeHandle;

/// An event loop, and its exchanges that Python holds. GIL held.
struct Members {
    std::unordered_set<ExchangeHandle*> handles;
    py::weakref loop;
};

/// GIL held by every caller. One consumer; `close` may come from any thread.
class ExchangeHandle {
public:
    /// `lease` where the calling thread drives it; `body` where Python objects are sent.
    ExchangeHandle(std::shared_ptr<transport::Exchange> exchange, transport::Lease lease,
                   py::object body, std::shared_ptr<Members> members = {});
    ExchangeHandle(const ExchangeHandle&) = delete;
    ExchangeHandle& operator=(const ExchangeHandle&) = delete;
    /// Cancels what still runs.
    ~ExchangeHandle();

    /// Works until there is news. Raises what a signal's handler, a part of the body or its
    /// callback raises, and ends the exchange then.
    void wait_for_news();
    /// The same until the end.
    void wait_for_end();

    /// Ends it, from any thread: the connection is closed.
    void close();

    [[nodiscard]] bool ended() const noexcept { return exchange_->ended(); }
    [[nodiscard]] bool has_news() const noexcept { return exchange_->has_news(); }
    [[nodiscard]] bool is_of(const std::shared_ptr<Members>& members) const noexcept {
        return members_ == members;
    }
    [[nodiscard]] bool is_of_loop(py::handle loop) const {
        return members_ != nullptr && members_->loop().is(loop);
    }
    [[nodiscard]] transport::Exchange& exchange() const noexcept { return *exchange_; }

    /// (status, HTTP version, header fields as bytes); None before.
    py::object head() const;
    /// (status, header fields, body, tries, elapsed seconds). Only at the end. Raises where there
    /// is no answer.
    py::tuple outcome();
    /// Bytes of a body that is read in pieces; empty where none have come.
    py::bytes take_bytes();

    /// The future to complete when there is news; None takes it back.
    void set_waiter(py::object future);
    /// Completes the future. Called by the port.
    void tell();
    void report_progress();

    /// For the garbage collector: a waiting future leads to who waits for this.
    int traverse(visitproc visit, void* arg) const;
    void clear() noexcept { waiter_ = py::object(); }

private:
    void drive();
    void let_go_of_body() noexcept;
    void leave_to_parent() noexcept;
    void check_process() const;

    std::shared_ptr<transport::Exchange> exchange_;
    transport::Lease lease_;
    py::object body_;
    py::object waiter_;
    std::shared_ptr<Members> members_;
    bool driving_ = false;
};

/// Lets go of the bodies of exchanges that nobody holds any more, where those have ended. GIL held.
void bury_ended();

/// Raises what went wrong; `body` may know better. GIL held.
[[noreturn]] void raise_failure(const Error& failure, py::handle body);

}  // namespace polymux::bindings
