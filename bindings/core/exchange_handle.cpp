#include "exchange_handle.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

#include "errors.hpp"

namespace polymux::bindings {

namespace {

using std::chrono::milliseconds;

/// A signal ends a wait at once on the main thread, where Python's handlers run, unless it came
/// just before the wait began: that one is seen a turn later. Other threads look now and then
/// whether the interpreter wants them.
constexpr milliseconds turn_of_main{20};
constexpr milliseconds turn_of_others{100};

milliseconds turn() noexcept {
    static thread_local const bool is_main = ::gettid() == ::getpid();
    return is_main ? turn_of_main : turn_of_others;
}

/// Exchanges that nobody holds any more and that have not ended: their bodies may be Python's,
/// which an I/O thread must not drop. Never freed: that thread may outlive `main`.
struct Left {
    std::shared_ptr<transport::Exchange> exchange;
    py::object body;
};

std::vector<Left>& left_behind() {
    static auto* const all = new std::vector<Left>;  // NOLINT: see above.
    return *all;
}

void give_back(const py::object& body) noexcept {
    if (body) py::cast<MultipartObject&>(body).give_back();
}

}  // namespace

void bury_ended() {
    std::vector<Left>& all = left_behind();
    const auto middle =
        std::ranges::partition(all, [](const Left& left) { return !left.exchange->ended(); });
    // Apart: what closes a file of Python's may begin or end other exchanges.
    const std::vector<Left> ended(std::make_move_iterator(middle.begin()),
                                  std::make_move_iterator(middle.end()));
    all.erase(middle.begin(), middle.end());
    for (const Left& left : ended) {
        left.exchange->release_body();
        give_back(left.body);
    }
}

ExchangeHandle::ExchangeHandle(std::shared_ptr<transport::Exchange> exchange,
                               transport::Lease lease, py::object body,
                               std::shared_ptr<Members> members)
    : exchange_(std::move(exchange)),
      lease_(std::move(lease)),
      body_(std::move(body)),
      members_(std::move(members)) {
    if (members_) members_->handles.insert(this);
    bury_ended();
    exchange_->owner = this;
}

ExchangeHandle::~ExchangeHandle() {
    if (members_) members_->handles.erase(this);
    if (!exchange_->of_this_process()) {
        leave_to_parent();
        return;
    }
    exchange_->owner = nullptr;
    if (!ended()) close();
    if (ended()) {
        let_go_of_body();
    } else if (body_) {
        left_behind().push_back({.exchange = exchange_, .body = std::move(body_)});
    }
}

/// In a child of a fork: whatever belongs to the exchange is the parent's, locks and sockets too.
void ExchangeHandle::leave_to_parent() noexcept {
    lease_.end();
    [[maybe_unused]] static std::vector<std::shared_ptr<transport::Exchange>>& left =
        *new std::vector<std::shared_ptr<transport::Exchange>>;  // NOLINT: never freed.
    left.push_back(std::move(exchange_));
    body_.release();
}

void ExchangeHandle::check_process() const {
    if (exchange_->of_this_process()) return;
    throw std::runtime_error(
        "this stream or request belongs to the process that began it: a child of a fork makes its "
        "own, with the same client");
}

void ExchangeHandle::let_go_of_body() noexcept {
    if (!body_) return;
    exchange_->release_body();
    give_back(body_);
    body_ = py::object();
}

void ExchangeHandle::drive() {
    transport::Stopped stopped = transport::Stopped::news;
    driving_ = true;
    without_gil([&] { stopped = lease_.run(*exchange_, turn()); });
    driving_ = false;
    if (stopped != transport::Stopped::news && PyErr_CheckSignals() != 0) {
        throw py::error_already_set();
    }
    report_progress();
}

void ExchangeHandle::report_progress() {
    if (!body_) return;
    auto& body = py::cast<MultipartObject&>(body_);
    body.report_progress(exchange_->sent_bytes(), exchange_->ended());
}

void ExchangeHandle::wait_for_news() {
    check_process();
    try {
        while (!has_news()) drive();
    } catch (...) {
        close();
        throw;
    }
    if (ended()) lease_.end();
}

void ExchangeHandle::wait_for_end() {
    try {
        while (!ended()) drive();
    } catch (...) {
        close();
        throw;
    }
    lease_.end();
}

void ExchangeHandle::close() {
    if (!exchange_->of_this_process()) return;
    exchange_->cancel();
    // Who drives it sees the wish; else nobody would.
    if (lease_ && !driving_) without_gil([this] { lease_.end(); });
}

py::object ExchangeHandle::head() const {
    const auto head = exchange_->head();
    if (!head) return py::none();
    return py::make_tuple(head->status, head->http_version, py::bytes(head->fields));
}

py::tuple ExchangeHandle::outcome() {
    const transport::Outcome& outcome = exchange_->outcome();
    if (outcome.failure) raise_failure(*outcome.failure, body_);
    let_go_of_body();
    const auto elapsed = std::chrono::duration<double>(outcome.elapsed).count();
    return py::make_tuple(outcome.head ? outcome.head->status : 0,
                          py::bytes(outcome.head ? outcome.head->fields : std::string()),
                          py::bytes(outcome.body), outcome.tries, elapsed);
}

py::bytes ExchangeHandle::take_bytes() {
    std::string bytes;
    exchange_->take(bytes);
    return bytes;
}

int ExchangeHandle::traverse(visitproc visit, void* arg) const {
    Py_VISIT(body_.ptr());
    Py_VISIT(waiter_.ptr());
    return 0;
}

void ExchangeHandle::set_waiter(py::object future) {
    if (!future.is_none()) check_process();
    waiter_ = future.is_none() ? py::object() : std::move(future);
}

void ExchangeHandle::tell() {
    if (!waiter_) return;
    // Interned: this is done for every token.
    static PyObject* const done = owned(PyUnicode_InternFromString("done")).release().ptr();
    static PyObject* const complete =
        owned(PyUnicode_InternFromString("set_result")).release().ptr();
    const py::object future = std::exchange(waiter_, py::object());
    if (owned(PyObject_CallMethodNoArgs(future.ptr(), done)).is(py::bool_(true))) return;
    owned(PyObject_CallMethodOneArg(future.ptr(), complete, Py_None));
}

void raise_failure(const Error& failure, py::handle body) {
    if (body) py::cast<MultipartObject&>(body).raise_kept();
    raise(failure);
}

}  // namespace polymux::bindings
