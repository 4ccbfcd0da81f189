#include "transport.hpp"

#include <string>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

#include "errors.hpp"
#include "exchange_handle.hpp"
#include "polymux/transport/loop_notifier.hpp"
#include "polymux/transport/session.hpp"

namespace polymux::bindings {

namespace {

using transport::Deadlines;
using transport::milliseconds;
using transport::RetryPolicy;
using Milliseconds = std::optional<std::int64_t>;

/// Options that a call may change: created once for each combination, and reused.
struct CallOptions {
    Deadlines deadlines;
    RetryPolicy retries;
    std::size_t max_answer_bytes = 0;
    std::size_t max_event_bytes = 0;
};

std::optional<milliseconds> length(Milliseconds count) {
    if (!count) return std::nullopt;
    return milliseconds(*count);
}

CallOptions make_options(Milliseconds connect_ms, Milliseconds write_ms, Milliseconds first_byte_ms,
                         Milliseconds idle_ms, Milliseconds event_ms, Milliseconds total_ms,
                         int max_retries, std::int64_t first_backoff_ms,
                         std::int64_t max_backoff_ms, std::int64_t max_retry_after_ms,
                         bool repeatable, std::size_t max_answer_bytes,
                         std::size_t max_event_bytes) {
    return {.deadlines = {.connect = length(connect_ms),
                          .write = length(write_ms),
                          .first_byte = length(first_byte_ms),
                          .idle = length(idle_ms),
                          .event = length(event_ms),
                          .total = length(total_ms)},
            .retries = {.max_retries = max_retries,
                        .first_backoff = milliseconds(first_backoff_ms),
                        .max_backoff = milliseconds(max_backoff_ms),
                        .max_retry_after = milliseconds(max_retry_after_ms),
                        .repeatable = repeatable},
            .max_answer_bytes = max_answer_bytes,
            .max_event_bytes = max_event_bytes};
}

transport::ResponseMode response_mode_of(const std::string& name) {
    if (name == "buffered") return transport::ResponseMode::buffered;
    if (name == "chat") return transport::ResponseMode::chat;
    if (name == "raw") return transport::ResponseMode::raw;
    throw py::value_error("invalid response mode (got " + name +
                          ", allowed buffered, chat or raw)");
}

/// A request from Python: (method, URL, header fields, body, response mode, options).
struct Given {
    std::string method;
    std::string url;
    std::vector<std::string> headers;
    py::object body;  // bytes, a MultipartBody, or None.
    std::string response_mode;
};

transport::Task task_of(const Given& given, const CallOptions& options) {
    transport::Task task{
        .request = {.method = given.method, .url = given.url, .headers = given.headers},
        .response_mode = response_mode_of(given.response_mode),
        .deadlines = options.deadlines,
        .retries = options.retries,
        .max_answer_bytes = options.max_answer_bytes};
    task.decoder.max_event_bytes = options.max_event_bytes;
    if (PyBytes_Check(given.body.ptr())) {
        task.request.body = std::string(py::reinterpret_borrow<py::bytes>(given.body));
    } else if (!given.body.is_none()) {
        task.request.body = py::cast<MultipartObject&>(given.body).acquire();
    }
    return task;
}

/// The Python body that an exchange borrows; null for bytes.
py::object borrowed_body(const Given& given) {
    const bool plain = given.body.is_none() || PyBytes_Check(given.body.ptr());
    return plain ? py::object() : given.body;
}

class PyLoopNotifier {
public:
    explicit PyLoopNotifier(const py::object& loop)
        : notifier_(value_or_raise(transport::LoopNotifier::create())),
          loop_exchanges_(std::make_shared<LoopExchanges>(py::weakref(loop))) {}
    PyLoopNotifier(const PyLoopNotifier&) = delete;
    PyLoopNotifier& operator=(const PyLoopNotifier&) = delete;
    ~PyLoopNotifier() {
        notifier_->close();
        reap_finished();
    }
    int descriptor() const noexcept { return notifier_->descriptor(); }
    const std::shared_ptr<transport::LoopNotifier>& notifier() const noexcept { return notifier_; }

    /// Completes the futures of all exchanges with news.
    void dispatch() {
        std::vector<std::shared_ptr<transport::Exchange>> ready;
        notifier_->take(ready);
        for (const auto& exchange : ready) loop_exchanges_->tell(*exchange);
        reap_finished();
    }

    /// Ends all exchanges of a loop.
    void close() {
        for (const auto& exchange : loop_exchanges_->exchanges()) {
            if (exchange->of_this_process()) exchange->cancel();
        }
    }
    /// The same for a loop that is closed, so its futures cannot be completed.
    void abandon() {
        close();
        loop_exchanges_->drop_waiters();
    }
    const std::shared_ptr<LoopExchanges>& loop_exchanges() const noexcept {
        return loop_exchanges_;
    }

private:
    std::shared_ptr<transport::LoopNotifier> notifier_;
    std::shared_ptr<LoopExchanges> loop_exchanges_;
};

class PySession {
public:
    explicit PySession(transport::SessionOptions options) : session_(std::move(options)) {}
    ~PySession() { close(); }
    PySession(const PySession&) = delete;
    PySession& operator=(const PySession&) = delete;

    py::tuple perform(const Given& given, const CallOptions& options) {
        const auto handle = open(given, options);
        handle->wait_for_end();
        return handle->outcome();
    }

    std::unique_ptr<ExchangeHandle> open(const Given& given, const CallOptions& options) {
        auto task = task_of(given, options);
        auto exchange = std::make_shared<transport::Exchange>(std::move(task));
        Result<transport::Lease> lease = Error{};
        without_gil([&] {
            lease = session_.lease();
            if (lease) lease->start(exchange);
        });
        if (!lease) raise_unstarted(lease.error(), given);
        return std::make_unique<ExchangeHandle>(std::move(exchange), *std::move(lease),
                                                borrowed_body(given));
    }

    std::unique_ptr<ExchangeHandle> start(const PyLoopNotifier& notifier, const Given& given,
                                          const CallOptions& options) {
        auto exchange =
            std::make_shared<transport::Exchange>(task_of(given, options), notifier.notifier());
        auto handle = std::make_unique<ExchangeHandle>(
            exchange, transport::Lease(), borrowed_body(given), notifier.loop_exchanges());
        Result<void> started;
        without_gil([&] { started = session_.start(exchange); });
        if (!started) raise(started.error());
        return handle;
    }

    void close() {
        without_gil([this] { session_.close(); });
        reap_finished();
    }
    bool repeatable() const noexcept { return session_.repeatable(); }

private:
    [[noreturn]] static void raise_unstarted(const Error& error, const Given& given) {
        if (const py::object body = borrowed_body(given))
            py::cast<MultipartObject&>(body).release();
        raise(error);
    }

    transport::Session session_;
};

Given given_of(std::string method, std::string url, std::vector<std::string> headers,
               py::object body, std::string response_mode) {
    return {.method = std::move(method),
            .url = std::move(url),
            .headers = std::move(headers),
            .body = std::move(body),
            .response_mode = std::move(response_mode)};
}

void register_handles(py::module_& module) {
    py::class_<ExchangeHandle>(module, "Exchange", py::is_final(), plain_metaclass(),
                               py::custom_type_setup(&collect_cycles<ExchangeHandle>),
                               "A running request and its response.")
        .def("__reduce__", &refuse_pickling)
        .def("wait_for_news", &ExchangeHandle::wait_for_news)
        .def("close", &ExchangeHandle::close)
        .def("outcome", &ExchangeHandle::outcome)
        .def("take_bytes", &ExchangeHandle::take_bytes)
        .def("set_waiter", &ExchangeHandle::set_waiter, py::arg("future"))
        .def(
            "belongs_to",
            [](const ExchangeHandle& self, const PyLoopNotifier& notifier) {
                return self.is_of(notifier.loop_exchanges());
            },
            py::arg("notifier"))
        .def("report_progress", &ExchangeHandle::report_progress)
        .def("resume_sending", [](const ExchangeHandle& self) { self.exchange().resume_sending(); })
        .def_property_readonly("head", &ExchangeHandle::head)
        .def_property_readonly("ended", &ExchangeHandle::ended)
        .def_property_readonly("retry_reasons", &ExchangeHandle::retry_reasons)
        .def_property_readonly("has_news", &ExchangeHandle::has_news)
        .def_property_readonly("starved",
                               [](const ExchangeHandle& self) { return self.exchange().starved(); })
        .def_property_readonly(
            "sent_bytes", [](const ExchangeHandle& self) { return self.exchange().sent_bytes(); });
    py::class_<PyLoopNotifier>(module, "LoopNotifier", py::is_final(), plain_metaclass(),
                               "Wakes an event loop when its requests have new data or have ended.")
        .def("__reduce__", &refuse_pickling)
        .def(py::init<const py::object&>(), py::arg("loop"))
        .def("dispatch", &PyLoopNotifier::dispatch)
        .def("close", &PyLoopNotifier::close)
        .def("abandon", &PyLoopNotifier::abandon)
        .def_property_readonly("descriptor", &PyLoopNotifier::descriptor);
}

}  // namespace

void register_transport(py::module_& module) {
    intern_names_of_futures();
    py::class_<CallOptions>(
        module, "CallOptions", py::is_final(), plain_metaclass(),
        "Timeouts, retries and size limits of a call. A timeout of None never expires.")
        .def("__reduce__", &refuse_pickling)
        .def(py::init(&make_options), py::kw_only(), py::arg("connect_ms"), py::arg("write_ms"),
             py::arg("first_byte_ms"), py::arg("idle_ms"), py::arg("event_ms"), py::arg("total_ms"),
             py::arg("max_retries"), py::arg("first_backoff_ms"), py::arg("max_backoff_ms"),
             py::arg("max_retry_after_ms"), py::arg("repeatable"), py::arg("max_answer_bytes"),
             py::arg("max_event_bytes"));
    register_handles(module);
    py::class_<PySession>(module, "Session", py::is_final(), plain_metaclass(),
                          "Connections to one server, and the engines that drive them.")
        .def("__reduce__", &refuse_pickling)
        .def(py::init([](std::vector<std::string> headers, std::string proxy, std::string no_proxy,
                         std::string certificates, bool verify, bool http2,
                         std::string client_certificate, bool reuse) {
                 return std::make_unique<PySession>(
                     transport::SessionOptions{.headers = std::move(headers),
                                               .proxy = std::move(proxy),
                                               .no_proxy = std::move(no_proxy),
                                               .certificates = std::move(certificates),
                                               .client_certificate = std::move(client_certificate),
                                               .verify = verify,
                                               .http2 = http2,
                                               .reuse = reuse});
             }),
             py::kw_only(), py::arg("headers"), py::arg("proxy"), py::arg("no_proxy"),
             py::arg("certificates"), py::arg("verify"), py::arg("http2"),
             py::arg("client_certificate") = std::string(), py::arg("reuse") = true)
        .def(
            "perform",
            [](PySession& self, std::string method, std::string url,
               std::vector<std::string> headers, py::object body, const CallOptions& options) {
                return self.perform(given_of(std::move(method), std::move(url), std::move(headers),
                                             std::move(body), "buffered"),
                                    options);
            },
            py::arg("method"), py::arg("url"), py::arg("headers"), py::arg("body"),
            py::arg("options"))
        .def(
            "open",
            [](PySession& self, std::string method, std::string url,
               std::vector<std::string> headers, py::object body, const CallOptions& options,
               std::string response_mode) {
                return self.open(given_of(std::move(method), std::move(url), std::move(headers),
                                          std::move(body), std::move(response_mode)),
                                 options);
            },
            py::arg("method"), py::arg("url"), py::arg("headers"), py::arg("body"),
            py::arg("options"), py::arg("response_mode"))
        .def(
            "start",
            [](PySession& self, const PyLoopNotifier& notifier, std::string method, std::string url,
               std::vector<std::string> headers, py::object body, const CallOptions& options,
               std::string response_mode) {
                return self.start(notifier,
                                  given_of(std::move(method), std::move(url), std::move(headers),
                                           std::move(body), std::move(response_mode)),
                                  options);
            },
            py::arg("notifier"), py::arg("method"), py::arg("url"), py::arg("headers"),
            py::arg("body"), py::arg("options"), py::arg("response_mode"))
        .def("close", &PySession::close)
        .def_property_readonly("repeatable", &PySession::repeatable);
}

}  // namespace polymux::bindings
