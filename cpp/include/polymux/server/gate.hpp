// Decides from the head of a request whether a server handles it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "polymux/http1/message.hpp"
#include "polymux/server/keys.hpp"

namespace polymux::server {

/// Of one server.
struct GateRules {
    /// In lower case, with or without a port. Empty: all, or those of this machine if
    /// `is_loopback_only`.
    std::vector<std::string> allowed_hosts = {};
    /// Origins of other web pages that may send requests.
    std::vector<std::string> allowed_origins = {};
    /// Only this machine can reach the server.
    bool is_loopback_only = false;
};

/// Of one endpoint.
struct EndpointRules {
    std::string scope = {};  ///< That the API key must have; empty: any key will do.
    std::vector<std::string> methods = {};
    /// The methods for people and for the header field Allow: "GET, HEAD".
    [[nodiscard]] std::string allowed_methods() const;
    bool is_public = false;            ///< Requires no key.
    bool is_loopback_public = false;   ///< Requires no key from this machine.
    bool accepts_any_address = false;  ///< Any IP address may be the Host.
    bool accepts_token = false;        ///< "Authorization: Token" means "Bearer".
};

struct RequestHead {
    std::string_view method;
    std::size_t target_bytes = 0;
    std::span<const http1::Field> fields;  ///< Names are in lower case.
    bool is_http_1_0 = false;
    // Addresses; empty for Unix sockets.
    std::string_view client_host;
    std::string_view server_host;
};

struct Admission {
    std::optional<std::size_t> key = {};  ///< Its index; absent for public endpoints.
    std::optional<std::uint64_t> content_length_bytes = {};
};

/// An error of the API.
struct GateRefusal {
    int status;
    std::string_view code;
    std::string message;
    std::string_view param = {};      ///< Name of a header field; empty if none is at fault.
    std::uint32_t retry_after_s = 0;  ///< 0: trying again is useless.
};

using GateDecision = std::variant<Admission, GateRefusal>;

/// Checks header, Host, method, Origin, API key and its scope, in this order. `keys` is null if
/// they cannot be read.
GateDecision admit(const GateRules& rules, const EndpointRules& endpoint, const KeyTable* keys,
                   const RequestHead& head, double now_s);

/// Whether lines of this field form one list (RFC 9110, section 5.3).
bool is_list_field(std::string_view name) noexcept;

}  // namespace polymux::server
