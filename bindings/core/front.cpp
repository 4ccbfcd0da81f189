#include "front.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pybind11/stl.h>

#include "asgi_scope.hpp"
#include "byte_objects.hpp"
#include "errors.hpp"
#include "polymux/server/front.hpp"
#include "python_bytes.hpp"

namespace polymux::bindings {

namespace {

using server::Event;
using server::Exchange;
using server::Front;

std::chrono::milliseconds duration_of(double seconds) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

void start_response(Exchange& exchange, int status, const py::iterable& headers) {
    std::vector<http1::Field> fields;
    std::vector<py::object> kept;
    for (const py::handle field : headers) {
        const py::sequence pair = py::reinterpret_borrow<py::sequence>(field);
        py::object name = pair[0];
        py::object value = pair[1];
        fields.push_back({.name = view_of_bytes(name), .value = view_of_bytes(value)});
        kept.push_back(std::move(name));
        kept.push_back(std::move(value));
    }
    const std::string_view problem = exchange.start(status, fields);
    if (!problem.empty()) throw py::value_error("response: " + std::string(problem));
}

bool write_bytes(Exchange& exchange, const py::object& data, bool is_last) {
    const HeldBuffer held(data);
    const std::span<const std::byte> bytes = held.bytes();
    return exchange.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, is_last);
}

py::tuple take_body(Exchange& exchange) {
    const Exchange::Body taken = exchange.take_body();
    return py::make_tuple(bytes_object(taken.bytes), taken.is_complete, taken.is_disconnected);
}

class FrontHandle {
public:
    FrontHandle(int listener, std::size_t io_threads, double header_timeout_s,
                double keep_alive_timeout_s, double write_timeout_s, std::size_t max_connections,
                std::optional<std::size_t> max_connections_per_network,
                const std::string& tls_certificate, const std::string& tls_key)
        : front_(value_or_raise(
              Front::start(listener, {.io_threads = io_threads,
                                      .header_timeout = duration_of(header_timeout_s),
                                      .keep_alive_timeout = duration_of(keep_alive_timeout_s),
                                      .write_timeout = duration_of(write_timeout_s),
                                      .max_connections = max_connections,
                                      .max_connections_per_network = max_connections_per_network,
                                      .tls_certificate = tls_certificate,
                                      .tls_key = tls_key}))) {}

    [[nodiscard]] Front& front() const {
        if (front_ == nullptr) throw std::runtime_error("the server is closed");
        return *front_;
    }

    py::list take() {
        std::vector<Event> events;
        front().take(events);
        py::list taken(events.size());
        for (std::size_t i = 0; i < events.size(); ++i) {
            py::object exchange = py::none();
            if (events[i].exchange != nullptr) exchange = py::cast(events[i].exchange);
            taken[i] = py::make_tuple(static_cast<int>(events[i].kind), exchange);
        }
        return taken;
    }

    void publish(std::shared_ptr<const server::GateRules> gate,
                 std::shared_ptr<const server::KeyTable> keys,
                 const std::vector<std::pair<std::string, std::shared_ptr<server::EndpointRules>>>&
                     endpoints) {
        auto rules = std::make_shared<server::FrontRules>();
        rules->gate = std::move(gate);
        rules->keys = std::move(keys);
        for (const auto& [path, of_endpoint] : endpoints) {
            rules->endpoints.push_back({.path = path, .rules = of_endpoint});
        }
        front().publish(std::move(rules));
    }

    py::tuple take_refused() {
        server::RefusedRequests taken;
        front().take_refused(taken);
        py::list requests(taken.requests.size());
        for (std::size_t i = 0; i < taken.requests.size(); ++i) {
            const server::RefusedRequest& one = taken.requests[i];
            requests[i] = py::make_tuple(one.status, one.duration_s, one.method,
                                         latin1_text(one.path), one.request_id);
        }
        py::list others(taken.others.size());
        for (std::size_t i = 0; i < taken.others.size(); ++i) {
            const server::RefusedCount& one = taken.others[i];
            others[i] = py::make_tuple(latin1_text(one.path), one.status, one.count);
        }
        return py::make_tuple(requests, others);
    }

    void close() {
        without_gil([this] { front_.reset(); });
    }

private:
    std::unique_ptr<Front> front_;
};

}  // namespace

void register_front(py::module_& module) {
    py::class_<Exchange, std::shared_ptr<Exchange>>(module, "ServerExchange", plain_metaclass(),
                                                    py::is_final(), "One request and its response.")
        .def("scope", &asgi_scope)
        .def("take_body", &take_body)
        .def("start", &start_response, py::arg("status"), py::arg("headers"))
        .def("write", &write_bytes, py::arg("data"), py::arg("is_last"))
        .def("flush", [](Exchange& self) { self.write({}, false); })
        .def("has_room", &Exchange::has_room)
        .def("disconnect", &Exchange::disconnect)
        .def_property_readonly("is_started", &Exchange::is_started)
        .def_property_readonly("is_ended", &Exchange::is_ended)
        .def("__reduce__", &refuse_pickling);
    py::class_<FrontHandle>(module, "ServerFront", plain_metaclass(), py::is_final(),
                            "Threads that receive requests on a listening socket.")
        .def(py::init<int, std::size_t, double, double, double, std::size_t,
                      std::optional<std::size_t>, const std::string&, const std::string&>(),
             py::arg("listener"), py::kw_only(), py::arg("io_threads"), py::arg("header_timeout_s"),
             py::arg("keep_alive_timeout_s"), py::arg("write_timeout_s"),
             py::arg("max_connections"), py::arg("max_connections_per_network"),
             py::arg("tls_certificate"), py::arg("tls_key"))
        .def("fileno", [](const FrontHandle& self) { return self.front().descriptor(); })
        .def("take", &FrontHandle::take)
        .def("publish", &FrontHandle::publish, py::arg("gate"), py::arg("keys"),
             py::arg("endpoints"))
        .def("take_refused", &FrontHandle::take_refused)
        .def("drain", [](const FrontHandle& self) { self.front().drain(); })
        .def("close_all", [](const FrontHandle& self) { self.front().close_all(); })
        .def("close", &FrontHandle::close)
        .def_property_readonly(
            "received_bytes", [](const FrontHandle& self) { return self.front().received_bytes(); })
        .def_property_readonly("dropped_bytes",
                               [](const FrontHandle& self) { return self.front().dropped_bytes(); })
        .def_property_readonly("connections",
                               [](const FrontHandle& self) { return self.front().connections(); })
        .def("__reduce__", &refuse_pickling);
}

}  // namespace polymux::bindings
