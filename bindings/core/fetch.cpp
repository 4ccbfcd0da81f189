#include "fetch.hpp"

#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

#include "errors.hpp"
#include "fetch_sink.hpp"
#include "polymux/cancel.hpp"
#include "polymux/transport/fetch.hpp"

namespace polymux::bindings {
namespace {

using transport::Fetched;
using transport::FetchLimits;
using transport::FetchPolicy;
using transport::FetchProgress;
using transport::FetchStart;
using namespace py::literals;  // NOLINT(google-build-using-namespace)

constexpr std::chrono::milliseconds progress_interval{50};

/// `FetchResume`: existing bytes, entity tag, total length.
using Resume = std::tuple<std::uint64_t, std::string, std::optional<std::uint64_t>>;

/// The operator's part of the options, validated once.
struct Policy {
    FetchPolicy rules;
    std::string certificate_bundle;
};

Policy make_policy(const std::vector<std::string>& hosts, const std::vector<std::string>& networks,
                   const std::vector<std::uint16_t>& ports, const std::string& bundle,
                   bool verify_allowed_hosts) {
    Policy policy;
    for (const std::string& text : hosts) {
        policy.rules.allowed_hosts.push_back(value_or_raise(transport::parse_allowed_host(text)));
    }
    for (const std::string& text : networks) {
        const auto network = transport::parse_network(text);
        if (!network) {
            raise({.code = ErrorCode::invalid_argument,
                   .message = "invalid allowed network (got " +
                              py::repr(py::str(text)).cast<std::string>() +
                              ", allowed an IP address and a prefix length such as "
                              "10.1.0.0/16). All bits after the prefix must be 0"});
        }
        policy.rules.allowed_networks.push_back(*network);
    }
    policy.rules.allowed_ports = ports;
    policy.rules.verify_allowed_hosts = verify_allowed_hosts;
    policy.certificate_bundle = bundle;
    return policy;
}

FetchLimits make_limits(std::uint64_t body_bytes, std::uint32_t header_bytes,
                        std::uint32_t header_count, std::uint32_t connect_ms, std::uint32_t idle_ms,
                        std::uint32_t total_ms, std::uint32_t rate_bytes_per_s,
                        std::uint32_t rate_window_ms, std::uint32_t redirects) {
    const FetchLimits limits{.body_bytes = body_bytes,
                             .header_bytes = header_bytes,
                             .header_count = header_count,
                             .connect_ms = connect_ms,
                             .idle_ms = idle_ms,
                             .total_ms = total_ms,
                             .rate_bytes_per_s = rate_bytes_per_s,
                             .rate_window_ms = rate_window_ms,
                             .redirects = redirects};
    if (const auto valid = transport::validate(limits); !valid) raise(valid.error());
    return limits;
}

/// Runs signal handlers and the caller's progress callback, both on the fetching thread.
class ProgressReporter {
public:
    ProgressReporter(py::object on_progress, PythonCalls& calls) : calls_(calls) {
        if (!on_progress.is_none()) on_progress_ = Reference(std::move(on_progress));
    }

    Result<void> poll(const FetchProgress& progress) {
        return calls_.call([&] {
            if (PyErr_CheckSignals() != 0) throw py::error_already_set();
            const auto now = std::chrono::steady_clock::now();
            if (now - last_report_ < progress_interval || progress.body_bytes == reported_bytes_)
                return;
            last_report_ = now;
            report(progress);
        });
    }
    /// GIL held.
    void report(const FetchProgress& progress) {
        reported_bytes_ = progress.body_bytes;
        if (!on_progress_) return;
        bindings::invoke(on_progress_.get(),
                         py::make_tuple(progress.body_bytes, progress.expected_bytes));
    }

private:
    PythonCalls& calls_;
    Reference on_progress_;
    std::chrono::steady_clock::time_point last_report_{};
    std::uint64_t reported_bytes_ = 0;
};

py::dict to_dict(const Fetched& fetched) {
    py::list headers;
    for (const auto& [name, value] : fetched.headers) {
        headers.append(py::make_tuple(to_text(name), to_text(value)));
    }
    return py::dict("url"_a = to_text(fetched.url), "status"_a = fetched.status,
                    "content_type"_a = to_text(fetched.content_type), "headers"_a = headers,
                    "body_bytes"_a = fetched.body_bytes,
                    "received_bytes"_a = fetched.received_bytes, "redirects"_a = fetched.redirects,
                    "offset"_a = fetched.offset);
}

/// Passes the response whose body follows to a callable that the caller keeps alive.
Result<void> report_start(py::handle on_start, const FetchStart& start, PythonCalls& calls) {
    return calls.call([&] {
        bindings::invoke(on_start, py::make_tuple(start.status, start.offset, start.total_bytes,
                                                  to_text(start.etag), start.is_encoded));
    });
}

py::dict fetch(const py::bytes& url, const Policy& policy, const FetchLimits& limits,
               const py::object& destination, const py::object& on_progress,
               const CancelToken& cancel, const std::optional<Resume>& resume,
               const py::object& on_start) {
    const std::string text = url;
    const auto calls = std::make_shared<PythonCalls>();
    const auto sink = make_body_sink(destination, calls);
    ProgressReporter reporter(on_progress, *calls);
    transport::FetchOptions options{
        .policy = policy.rules, .limits = limits, .certificate_bundle = policy.certificate_bundle};
    if (resume)
        std::tie(options.resume.offset_bytes, options.resume.etag, options.resume.total_bytes) =
            *resume;
    if (!on_start.is_none()) {
        options.started = [&](const FetchStart& start) {
            return report_start(on_start, start, *calls);
        };
    }
    Result<Fetched> fetched = Error{};
    without_gil([&] {
        const auto write = [&](std::span<const std::byte> piece) { return sink->write(piece); };
        const auto poll = [&](const FetchProgress& progress) { return reporter.poll(progress); };
        fetched = transport::fetch(text, options, write, poll, cancel);
    });
    if (calls->failed()) calls->raise();
    const Fetched& done = value_or_raise(std::move(fetched));
    reporter.report({.body_bytes = done.offset + done.body_bytes, .expected_bytes = {}});
    py::dict result = to_dict(done);
    if (py::object bytes = sink->take_bytes()) result["data"] = std::move(bytes);
    return result;
}

std::tuple<std::string, std::uint16_t, std::vector<std::string>> resolve_destination(
    const py::bytes& url, const Policy& policy, const FetchLimits& limits,
    const CancelToken& cancel) {
    const std::string text = url;
    const transport::FetchOptions options{.policy = policy.rules, .limits = limits};
    Result<transport::Destination> found = Error{};
    without_gil([&] { found = transport::resolve_destination(text, options, cancel); });
    const transport::Destination& destination = value_or_raise(std::move(found));
    std::vector<std::string> addresses;
    addresses.reserve(destination.addresses.size());
    for (const transport::Address& each : destination.addresses) {
        addresses.push_back(transport::to_text(each));
    }
    return {destination.host, destination.port, std::move(addresses)};
}

std::vector<std::tuple<std::string, std::string, std::string>> reserved_networks() {
    std::vector<std::tuple<std::string, std::string, std::string>> rows;
    for (const auto& row : transport::reserved_networks()) {
        rows.emplace_back(row.text, row.purpose, row.source);
    }
    return rows;
}

}  // namespace

void register_fetch(py::module_& module) {
    py::class_<CancelToken>(
        module, "CancelToken", py::is_final(), plain_metaclass(),
        "A cancellation flag: one thread sets it, and the working thread checks it.")
        .def("__reduce__", &refuse_pickling)
        .def(py::init<>())
        .def("cancel", &CancelToken::cancel)
        .def_property_readonly("cancelled", &CancelToken::cancelled);
    py::class_<Policy>(module, "FetchPolicy", py::is_final(), plain_metaclass(),
                       "A validated polymux::transport::FetchPolicy.")
        .def("__reduce__", &refuse_pickling)
        .def(py::init(&make_policy), py::arg("allowed_hosts"), py::arg("allowed_networks"),
             py::arg("allowed_ports"), py::arg("certificate_bundle"),
             py::arg("verify_allowed_hosts") = true);
    const FetchLimits defaults;
    py::class_<FetchLimits>(module, "FetchLimits", py::is_final(), plain_metaclass(),
                            "Validated polymux::transport::FetchLimits.")
        .def("__reduce__", &refuse_pickling)
        .def(py::init(&make_limits), py::kw_only(), py::arg("body_bytes") = defaults.body_bytes,
             py::arg("header_bytes") = defaults.header_bytes,
             py::arg("header_count") = defaults.header_count,
             py::arg("connect_ms") = defaults.connect_ms, py::arg("idle_ms") = defaults.idle_ms,
             py::arg("total_ms") = defaults.total_ms,
             py::arg("rate_bytes_per_s") = defaults.rate_bytes_per_s,
             py::arg("rate_window_ms") = defaults.rate_window_ms,
             py::arg("redirects") = defaults.redirects)
        .def_readonly("body_bytes", &FetchLimits::body_bytes)
        .def_readonly("header_bytes", &FetchLimits::header_bytes)
        .def_readonly("header_count", &FetchLimits::header_count)
        .def_readonly("connect_ms", &FetchLimits::connect_ms)
        .def_readonly("idle_ms", &FetchLimits::idle_ms)
        .def_readonly("total_ms", &FetchLimits::total_ms)
        .def_readonly("rate_bytes_per_s", &FetchLimits::rate_bytes_per_s)
        .def_readonly("rate_window_ms", &FetchLimits::rate_window_ms)
        .def_readonly("redirects", &FetchLimits::redirects);
    module.def("fetch", &fetch, py::arg("url"), py::arg("policy"), py::arg("limits"),
               py::arg("destination"), py::arg("on_progress"), py::arg("cancel"),
               py::arg("resume") = py::none(), py::arg("on_start") = py::none(),
               "Fetch a URL from untrusted input; see polymux.fetch.");
    module.def("resolve_destination", &resolve_destination, py::arg("url"), py::arg("policy"),
               py::arg("limits"), py::arg("cancel"),
               "Return host, port and addresses of a URL, checked as in `fetch`.");
    module.def("reserved_networks", &reserved_networks,
               "Return the blocked networks: (network, purpose, source).");
}

}  // namespace polymux::bindings
