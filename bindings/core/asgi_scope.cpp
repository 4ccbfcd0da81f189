#include "asgi_scope.hpp"

#include <string>
#include <string_view>

#include "byte_objects.hpp"

namespace polymux::bindings {

namespace {

int digit(char letter) noexcept {
    if (letter >= '0' && letter <= '9') return letter - '0';
    if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
    if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
    return -1;
}

/// Without percent-encoding; invalid UTF-8 becomes U+FFFD, and invalid encodings stay.
py::object decoded_path(std::string_view path) {
    if (path.find('%') == std::string_view::npos) return latin1_text(path);
    std::string plain;
    plain.reserve(path.size());
    for (std::size_t i = 0; i < path.size(); ++i) {
        const int high = path[i] == '%' && i + 2 < path.size() ? digit(path[i + 1]) : -1;
        const int low = high >= 0 ? digit(path[i + 2]) : -1;
        if (low >= 0) {
            plain += static_cast<char>(high * 16 + low);
            i += 2;
        } else {
            plain += path[i];
        }
    }
    return owned(
        PyUnicode_DecodeUTF8(plain.data(), static_cast<Py_ssize_t>(plain.size()), "replace"));
}

py::object address(const server::SocketName& name) {
    if (name.host.empty()) return py::none();
    return py::make_tuple(name.host, name.port);
}

}  // namespace

py::dict asgi_scope(const server::Exchange& exchange) {
    const server::Exchange::Head& head = exchange.head();
    const std::size_t query_at = head.target.find('?');
    const std::string_view path = head.target.substr(0, query_at);
    const std::string_view query =
        query_at == std::string_view::npos ? "" : head.target.substr(query_at + 1);
    py::list headers(head.fields.size());
    for (std::size_t i = 0; i < head.fields.size(); ++i) {
        headers[i] =
            py::make_tuple(bytes_object(head.fields[i].name), bytes_object(head.fields[i].value));
    }
    py::dict scope;
    scope["type"] = "http";
    scope["asgi"] = py::dict(py::arg("version") = "3.0", py::arg("spec_version") = "2.3");
    scope["http_version"] = head.is_http_1_0 ? "1.0" : "1.1";
    scope["method"] = latin1_text(head.method);
    scope["scheme"] = exchange.is_encrypted() ? "https" : "http";
    scope["path"] = decoded_path(path);
    scope["raw_path"] = bytes_object(path);
    scope["query_string"] = bytes_object(query);
    scope["root_path"] = "";
    scope["headers"] = headers;
    scope["client"] = address(exchange.client());
    scope["server"] = address(exchange.server());
    scope["state"] = py::dict();
    return scope;
}

}  // namespace polymux::bindings
