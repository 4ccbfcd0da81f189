#include "exchange_handle.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "errors.hpp"

namespace polymux::bindings {

namespace {

using std::chrono::milliseconds;

/// On the main thread, where Python's handlers run, a signal interrupts a wait at once. If it
/// arrives just before the wait, it is handled after this interval. Other threads check
/// periodically whether the interpreter has work for them.
constexpr milliseconds main_thread_interval{20};
constexpr milliseconds other_thread_interval{100};

milliseconds poll_interval() noexcept {
    static thread_local const bool is_main = ::gettid() == ::getpid();
    return is_main ? main_thread_interval : other_thread_interval;
}

/// Exchanges without a handle that have not ended. Their bodies may be Python objects, which an I/O
/// thread must not drop. Never freed, because that thread may outlive `main`.
struct DeferredRelease {
    std::shared_ptr<transport::Exchange> exchange;
    py::object body;
};

struct DeferredReleases {
    GilLock lock;
    std::vector<DeferredRelease> exchanges;
    std::vector<std::shared_ptr<transport::Exchange>> of_parent;
};

DeferredReleases& deferred_releases() {
    static auto* const all = new DeferredReleases;  // NOLINT: see above.
    return *all;
}

// Interned, because every token uses them. They live as long as the process.
PyObject* name_of_done = nullptr;
PyObject* name_of_set_result = nullptr;

void release(const py::object& body) noexcept {
    if (body) py::cast<MultipartObject&>(body).release();
}

}  // namespace

void reap_finished() {
    DeferredReleases& all = deferred_releases();
    // A separate list, because closing a Python file may start or end other exchanges.
    std::vector<DeferredRelease> ended;
    {
        const std::scoped_lock lock(all.lock);
        const auto middle = std::ranges::partition(
            all.exchanges, [](const DeferredRelease& left) { return !left.exchange->ended(); });
        ended.assign(std::make_move_iterator(middle.begin()),
                     std::make_move_iterator(middle.end()));
        all.exchanges.erase(middle.begin(), middle.end());
    }
    for (const DeferredRelease& left : ended) {
        left.exchange->release_body();
        release(left.body);
    }
}

void intern_names_of_futures() {
    name_of_done = owned(PyUnicode_InternFromString("done")).release().ptr();
    name_of_set_result = owned(PyUnicode_InternFromString("set_result")).release().ptr();
}

void LoopExchanges::add(ExchangeHandle* handle) {
    const std::scoped_lock lock(lock_);
    handles_.insert(handle);
    handle->exchange().owner = handle;
}

void LoopExchanges::remove(ExchangeHandle* handle, transport::Exchange& exchange) {
    const std::scoped_lock lock(lock_);
    handles_.erase(handle);
    exchange.owner = nullptr;
}

std::vector<std::shared_ptr<transport::Exchange>> LoopExchanges::exchanges() const {
    std::vector<std::shared_ptr<transport::Exchange>> found;
    const std::scoped_lock lock(lock_);
    found.reserve(handles_.size());
    // In any order: NOLINTNEXTLINE(bugprone-nondeterministic-pointer-iteration-order)
    for (const ExchangeHandle* const handle : handles_) found.push_back(handle->shared_exchange());
    return found;
}

void LoopExchanges::drop_waiters() {
    std::vector<py::object> dropped;  // After the lock is released.
    const std::scoped_lock lock(lock_);
    dropped.reserve(handles_.size());
    // In any order: NOLINTNEXTLINE(bugprone-nondeterministic-pointer-iteration-order)
    for (ExchangeHandle* const handle : handles_) dropped.push_back(handle->take_waiter());
}

void LoopExchanges::tell(const transport::Exchange& exchange) {
    py::object future;
    {
        const std::scoped_lock lock(lock_);
        auto* const handle = static_cast<ExchangeHandle*>(exchange.owner.load());
        if (handle != nullptr) future = handle->take_waiter();
    }
    if (!future) return;
    if (owned(PyObject_CallMethodNoArgs(future.ptr(), name_of_done)).is(py::bool_(true))) return;
    owned(PyObject_CallMethodOneArg(future.ptr(), name_of_set_result, Py_None));
}

ExchangeHandle::ExchangeHandle(std::shared_ptr<transport::Exchange> exchange,
                               transport::Lease lease, py::object body,
                               std::shared_ptr<LoopExchanges> loop_exchanges)
    : exchange_(std::move(exchange)),
      loop_exchanges_(std::move(loop_exchanges)),
      lease_(std::move(lease)),
      body_(std::move(body)) {
    if (loop_exchanges_) loop_exchanges_->add(this);
    reap_finished();
}

ExchangeHandle::~ExchangeHandle() {
    if (loop_exchanges_) loop_exchanges_->remove(this, *exchange_);
    if (!exchange_->of_this_process()) {
        leave_to_parent();
        return;
    }
    if (!ended()) close();
    if (ended()) {
        drop_body();
    } else if (body_) {
        DeferredReleases& all = deferred_releases();
        const std::scoped_lock lock(all.lock);
        all.exchanges.push_back({.exchange = exchange_, .body = std::move(body_)});
    }
}

/// In a forked child: everything of the exchange belongs to the parent, including locks and
/// sockets.
void ExchangeHandle::leave_to_parent() noexcept {
    lease_.end();
    DeferredReleases& all = deferred_releases();
    const std::scoped_lock lock(all.lock);
    all.of_parent.push_back(std::move(exchange_));
    body_.release();
}

void ExchangeHandle::check_process() const {
    if (exchange_->of_this_process()) return;
    throw std::runtime_error(
        "this stream or request belongs to the process that started it. After a fork, start a new "
        "one in the child process; it can use the same client");
}

py::object ExchangeHandle::body() const {
    const std::scoped_lock lock(lock_);
    return body_;
}

void ExchangeHandle::drop_body() noexcept {
    py::object body;
    {
        const std::scoped_lock lock(lock_);
        body = std::exchange(body_, py::object());
    }
    if (!body) return;
    exchange_->release_body();
    release(body);
}

void ExchangeHandle::drive() {
    transport::RunResult stopped = transport::RunResult::timed_out;
    {
        const Claim mine(driven_);
        if (mine && lease_) {
            without_gil([&] { stopped = lease_.run(*exchange_, poll_interval()); });
        } else if (!closed_) {
            throw std::runtime_error("this request is no longer running");
        } else {
            // The thread that closes it is about to end it.
            without_gil([] { std::this_thread::sleep_for(milliseconds(1)); });
        }
    }
    if (closed_) return_lease();
    if (stopped != transport::RunResult::news && PyErr_CheckSignals() != 0) {
        throw py::error_already_set();
    }
    report_progress();
}

void ExchangeHandle::report_progress() {
    // Kept here, because its callback may run for long, and another thread may release it
    // meanwhile.
    const py::object body = this->body();
    if (!body) return;
    py::cast<MultipartObject&>(body).report_progress(exchange_->sent_bytes(), exchange_->ended());
}

/// Runs the exchange until `reached()`.
template <typename Reached>
void ExchangeHandle::work_until(const Reached& reached) {
    const Claim mine(waited_for_);
    if (!mine) {
        throw std::runtime_error(
            "another call is already waiting for this request. A request can have only one reader "
            "at a time");
    }
    try {
        while (!reached()) drive();
    } catch (...) {
        close();
        throw;
    }
    if (ended()) return_lease();
}

void ExchangeHandle::wait_for_news() {
    check_process();
    work_until([this] { return has_news(); });
}

void ExchangeHandle::wait_for_end() {
    work_until([this] { return ended(); });
}

void ExchangeHandle::close() {
    if (!exchange_->of_this_process()) return;
    closed_ = true;
    exchange_->cancel();
    // If another thread drives the exchange, it sees the request; otherwise this thread must.
    const Claim mine(driven_);
    if (mine && lease_) without_gil([this] { lease_.end(); });
}

/// If another thread uses it, that thread returns it.
void ExchangeHandle::return_lease() noexcept {
    const Claim mine(driven_);
    if (!mine) return;
    if (lease_.idle()) {
        lease_.end();
    } else {
        without_gil([this] { lease_.end(); });
    }
}

py::object ExchangeHandle::head() const {
    const auto head = exchange_->head();
    if (!head) return py::none();
    return py::make_tuple(head->status, head->http_version, py::bytes(head->fields));
}

py::tuple ExchangeHandle::outcome() {
    if (!ended()) throw std::runtime_error("this request has not ended yet");
    const transport::Outcome& outcome = exchange_->outcome();
    if (outcome.failure) raise_failure(*outcome.failure, body(), retry_reasons());
    drop_body();
    const auto elapsed = std::chrono::duration<double>(outcome.elapsed).count();
    return py::make_tuple(outcome.head ? outcome.head->status : 0,
                          py::bytes(outcome.head ? outcome.head->fields : std::string()),
                          py::bytes(outcome.body), outcome.tries, elapsed, retry_reasons());
}

py::tuple ExchangeHandle::retry_reasons() const {
    py::list texts;
    for (const std::string& reason : exchange_->retry_reasons()) texts.append(to_text(reason));
    return py::tuple(texts);
}

py::bytes ExchangeHandle::take_bytes() {
    std::string bytes;
    exchange_->take(bytes);
    return bytes;
}

int ExchangeHandle::traverse(visitproc visit, void* arg) const {
    Py_VISIT(body_.ptr());
    return 0;
}

void ExchangeHandle::set_waiter(py::object future) {
    if (!future.is_none()) check_process();
    if (future.is_none()) future = py::object();
    // The previous waiter is dropped after the lock is released.
    const std::scoped_lock lock(lock_);
    std::swap(waiter_, future);
}

py::object ExchangeHandle::take_waiter() noexcept {
    const std::scoped_lock lock(lock_);
    return std::exchange(waiter_, py::object());
}

void raise_failure(const Error& failure, py::handle body, const py::tuple& retry_reasons) {
    if (body) py::cast<MultipartObject&>(body).raise_kept();
    const py::object exception = make_exception(failure);
    if (!retry_reasons.empty()) exception.attr("retry_reasons") = retry_reasons;
    raise_object(exception, {});
}

}  // namespace polymux::bindings
