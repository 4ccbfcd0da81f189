#include "gate.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/stl.h>

#include "byte_objects.hpp"
#include "errors.hpp"
#include "polymux/server/gate.hpp"

namespace polymux::bindings {

namespace {

using server::EndpointRules;
using server::GateRules;
using server::KeyTable;

using StampValues = std::tuple<std::int64_t, std::int64_t, std::uint64_t, std::uint32_t>;
using KeyValues =
    std::tuple<py::bytes, std::optional<std::vector<std::string>>, std::optional<double>>;

std::shared_ptr<KeyTable> key_table(std::string path, const std::optional<StampValues>& stamp,
                                    const std::vector<KeyValues>& values) {
    std::vector<server::Key> keys;
    keys.reserve(values.size());
    for (const auto& [digest, scopes, expires_at_s] : values) {
        server::Key& key = keys.emplace_back();
        const std::string_view bytes = view_of_bytes(digest);
        if (bytes.size() != key.sha256.size()) throw py::value_error("invalid hash");
        std::copy(bytes.begin(), bytes.end(), key.sha256.begin());
        key.scopes = scopes;
        if (expires_at_s) key.expires_at_s = *expires_at_s;
    }
    std::optional<server::FileStamp> of_file;
    if (stamp) {
        const auto& [modified_ns, size_bytes, inode, mode] = *stamp;
        of_file = {
            .modified_ns = modified_ns, .size_bytes = size_bytes, .inode = inode, .mode = mode};
    }
    return std::make_shared<KeyTable>(std::move(path), of_file, std::move(keys));
}

/// The address of "client" or "server"; empty if it is unknown.
std::string host_of(const py::dict& scope, const char* name) {
    const py::object pair = scope.attr("get")(name);
    if (pair.is_none()) return {};
    const py::object host = pair[py::int_(0)];
    return py::isinstance<py::str>(host) ? host.cast<std::string>() : std::string();
}

/// Names and values; repeated lines of a list are joined, else the first one counts.
py::dict fields_of(const py::list& headers) {
    py::dict found;
    for (const py::handle line : headers) {
        const auto pair = py::reinterpret_borrow<py::sequence>(line);
        const py::object name = pair[0];
        const py::object value = pair[1];
        if (!found.contains(name)) {
            found[name] = value;
        } else if (server::is_list_field(view_of_bytes(name))) {
            const py::object first = found[name];
            std::string joined(view_of_bytes(first));
            joined.append(", ").append(view_of_bytes(value));
            found[name] = py::bytes(joined);
        }
    }
    return found;
}

py::object admit(const GateRules& rules, const EndpointRules& endpoint, const KeyTable* keys,
                 const py::dict& scope, double now_s) {
    // Both keep what the views below refer to.
    const py::list headers(scope["headers"]);
    std::vector<py::object> kept;
    std::vector<http1::Field> fields;
    for (const py::handle line : headers) {
        const auto pair = py::reinterpret_borrow<py::sequence>(line);
        fields.push_back({.name = view_of_bytes(kept.emplace_back(pair[0])),
                          .value = view_of_bytes(kept.emplace_back(pair[1]))});
    }
    const py::object path = scope.attr("get")("raw_path");
    const std::string method = scope["method"].cast<std::string>();
    const std::string client = host_of(scope, "client");
    const std::string server = host_of(scope, "server");
    const server::RequestHead head{
        .method = method,
        .target_bytes = (path.is_none() ? 0 : view_of_bytes(path).size()) +
                        view_of_bytes(scope["query_string"]).size(),
        .fields = fields,
        .is_http_1_0 = scope.attr("get")("http_version").equal(py::str("1.0")),
        .client_host = client,
        .server_host = server};
    const server::GateDecision decision = server::admit(rules, endpoint, keys, head, now_s);
    if (const auto* const refusal = std::get_if<server::GateRefusal>(&decision)) {
        py::object param = py::none();
        if (!refusal->param.empty()) param = py::str(std::string(refusal->param));
        return py::make_tuple(refusal->status, std::string(refusal->code), refusal->message, param,
                              refusal->retry_after_s);
    }
    const auto& admission = std::get<server::Admission>(decision);
    return py::make_tuple(fields_of(headers), admission.key, admission.content_length_bytes);
}

}  // namespace

void register_gate(py::module_& module) {
    py::class_<KeyTable, std::shared_ptr<KeyTable>>(module, "KeyTable", plain_metaclass(),
                                                    py::is_final(), "The API keys of a file.")
        .def(py::init(&key_table), py::arg("path"), py::arg("stamp"), py::arg("keys"))
        .def(
            "find",
            [](const KeyTable& self, const py::bytes& text, double now_s) {
                return self.find(view_of_bytes(text), now_s);
            },
            py::arg("text"), py::arg("now_s"))
        .def("is_current", &KeyTable::is_current)
        .def("__reduce__", &refuse_pickling);
    py::class_<EndpointRules, std::shared_ptr<EndpointRules>>(
        module, "EndpointRules", plain_metaclass(), py::is_final(), "Requirements of an endpoint.")
        .def(py::init([](std::string scope, std::vector<std::string> methods, bool is_public,
                         bool is_loopback_public, bool accepts_any_address, bool accepts_token) {
                 return std::make_shared<EndpointRules>(
                     EndpointRules{.scope = std::move(scope),
                                   .methods = std::move(methods),
                                   .is_public = is_public,
                                   .is_loopback_public = is_loopback_public,
                                   .accepts_any_address = accepts_any_address,
                                   .accepts_token = accepts_token});
             }),
             py::arg("scope"), py::arg("methods"), py::kw_only(), py::arg("is_public"),
             py::arg("is_loopback_public"), py::arg("accepts_any_address"),
             py::arg("accepts_token"))
        .def("__reduce__", &refuse_pickling);
    py::class_<GateRules, std::shared_ptr<GateRules>>(module, "GateRules", plain_metaclass(),
                                                      py::is_final(), "Requirements of a server.")
        .def(py::init([](std::vector<std::string> allowed_hosts,
                         std::vector<std::string> allowed_origins, bool is_loopback_only) {
                 return std::make_shared<GateRules>(
                     GateRules{.allowed_hosts = std::move(allowed_hosts),
                               .allowed_origins = std::move(allowed_origins),
                               .is_loopback_only = is_loopback_only});
             }),
             py::kw_only(), py::arg("allowed_hosts"), py::arg("allowed_origins"),
             py::arg("is_loopback_only"))
        .def("admit", &admit, py::arg("endpoint"), py::arg("keys").none(true), py::arg("scope"),
             py::arg("now_s"))
        .def("__reduce__", &refuse_pickling);
}

}  // namespace polymux::bindings
