#include "polymux/server/gate.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "ascii.hpp"

namespace polymux::server {

namespace {

using namespace std::string_view_literals;

constexpr std::size_t max_target_bytes = std::size_t{8} << 10;
constexpr std::size_t max_header_bytes = std::size_t{64} << 10;
constexpr std::size_t max_fields = 200;
constexpr std::size_t max_key_bytes = 512;
constexpr std::size_t max_length_digits = 18;
constexpr std::array loopback_hosts{"localhost"sv, "127.0.0.1"sv, "[::1]"sv};

template <typename Texts>
bool contains(const Texts& texts, std::string_view wanted) noexcept {
    return std::find(std::begin(texts), std::end(texts), wanted) != std::end(texts);
}

/// Fields that must not be repeated, because servers and proxies may use different values. Their
/// values are found by this index.
enum class Single : std::uint8_t {
    authorization,
    content_length,
    content_type,
    expect,
    host,
    idempotency_key,
    origin,
    range,
    transfer_encoding,
};
constexpr std::array single_names{"authorization"sv, "content-length"sv, "content-type"sv,
                                  "expect"sv,        "host"sv,           "idempotency-key"sv,
                                  "origin"sv,        "range"sv,          "transfer-encoding"sv};

using Values = std::array<std::optional<std::string_view>, single_names.size()>;

GateRefusal bad_request(std::string message, std::string_view param) {
    return {
        .status = 400, .code = "invalid_request", .message = std::move(message), .param = param};
}

/// `text` in quotes, without what a terminal or a log would interpret; shortened.
std::string quoted(std::string_view text) {
    constexpr std::size_t most = 200;
    std::string result = "'";
    for (const char letter : text.substr(0, most)) {
        result += letter >= ' ' && letter <= '~' && letter != '\'' && letter != '\\' ? letter : '?';
    }
    if (text.size() > most) result += "...";
    return result += '\'';
}

/// Without ":80" at the end.
std::string_view without_port(std::string_view host) noexcept {
    const std::size_t colon = host.rfind(':');
    if (colon == std::string_view::npos || colon + 1 == host.size()) return host;
    const std::string_view port = host.substr(colon + 1);
    return std::all_of(port.begin(), port.end(), is_digit) ? host.substr(0, colon) : host;
}

/// A name or IPv4 address, or an IPv6 address in brackets; with a port of up to 5 digits.
bool is_host(std::string_view text) noexcept {
    const std::string_view name = without_port(text);
    if (text.size() > name.size() + 6) return false;
    if (name.starts_with('[')) {
        if (!name.ends_with(']') || name.size() < 4 || name.size() > 47) return false;
        const std::string_view address = name.substr(1, name.size() - 2);
        return std::all_of(address.begin(), address.end(), [](char letter) {
            return hex_digit(letter) >= 0 || letter == ':' || letter == '.';
        });
    }
    return !name.empty() && name.size() <= 253 &&
           std::all_of(name.begin(), name.end(), [](char letter) {
               return is_word(letter) || letter == '.' || letter == '-';
           });
}

bool is_address(std::string_view host) {
    std::string_view name = without_port(host);
    if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
    const std::string text(name);
    in6_addr parsed{};
    return ::inet_pton(AF_INET, text.c_str(), &parsed) == 1 ||
           ::inet_pton(AF_INET6, text.c_str(), &parsed) == 1;
}

/// Fields that proxies add: with one of them, a request does not come from this machine.
bool is_of_proxy(std::string_view name) noexcept {
    constexpr std::array names{"forwarded"sv,       "x-forwarded"sv,      "via"sv,
                               "x-real-ip"sv,       "x-client-ip"sv,      "x-cluster-client-ip"sv,
                               "true-client-ip"sv,  "cf-connecting-ip"sv, "cf-connecting-ipv6"sv,
                               "fastly-client-ip"sv};
    return contains(names, name) || name.starts_with("x-forwarded-") ||
           name.starts_with("x-original-");
}

class Check {
public:
    Check(const GateRules& rules, const EndpointRules& endpoint, const RequestHead& head) noexcept
        : rules_(rules), endpoint_(endpoint), head_(head) {}

    GateDecision run(const KeyTable* keys, double now_s) {
        for (const auto step : {&Check::check_size, &Check::read_fields, &Check::check_framing,
                                &Check::check_host, &Check::check_method, &Check::check_origin}) {
            if (auto refusal = (this->*step)()) return *std::move(refusal);
        }
        if (endpoint_.is_public || (endpoint_.is_loopback_public && is_from_this_machine()))
            return Admission{};
        if (keys == nullptr) {
            return GateRefusal{.status = 503,
                               .code = "overloaded",
                               .message =
                                   "the server cannot check API keys at the moment. Try "
                                   "again later, or ask the server's administrator to "
                                   "check the log",
                               .retry_after_s = 10};
        }
        const std::optional<std::string_view> text = token();
        // Also looks up a missing key: all cases take equally long.
        const std::optional<std::size_t> key = keys->find(text.value_or(""), now_s);
        if (!key || !text) {
            // The same message for a missing and an unknown key.
            return GateRefusal{
                .status = 401,
                .code = "unauthorized",
                .message = "missing or invalid API key. Send `Authorization: Bearer <key>`"};
        }
        if (!endpoint_.scope.empty() && !(*keys)[*key].allows(endpoint_.scope)) {
            return GateRefusal{
                .status = 403,
                .code = "forbidden",
                .message =
                    "permission denied: this API key does not have the scope " + endpoint_.scope};
        }
        Admission admission{.key = key};
        if (const auto value = of(Single::content_length)) {
            const char* const end = value->data() + value->size();
            const auto [stop, code] =
                std::from_chars(value->data(), end, admission.content_length_bytes.emplace());
            if (code != std::errc() || stop != end || value->size() > max_length_digits) {
                return bad_request("Content-Length: invalid (got " + quoted(*value) +
                                       ", allowed an integer with at most 18 digits)",
                                   "Content-Length");
            }
        }
        return admission;
    }

private:
    using Refusal = std::optional<GateRefusal>;

    [[nodiscard]] std::optional<std::string_view> of(Single name) const noexcept {
        return values_.at(static_cast<std::size_t>(name));
    }

    Refusal check_size() {
        if (head_.target_bytes > max_target_bytes) {
            return GateRefusal{.status = 414,
                               .code = "too_long",
                               .message = "the URL is too long (got " +
                                          std::to_string(head_.target_bytes) + " bytes, allowed " +
                                          std::to_string(max_target_bytes) + ")"};
        }
        std::size_t size = 0;
        for (const http1::Field& field : head_.fields)
            size += field.name.size() + field.value.size();
        if (head_.fields.size() <= max_fields && size <= max_header_bytes) return {};
        return GateRefusal{.status = 431,
                           .code = "header_too_large",
                           .message = "the request header is too large (got " +
                                      std::to_string(head_.fields.size()) + " fields with " +
                                      std::to_string(size) + " bytes, allowed " +
                                      std::to_string(max_fields) + " fields with " +
                                      std::to_string(max_header_bytes) + " bytes)"};
    }

    Refusal read_fields() {
        for (const http1::Field& field : head_.fields) {
            const auto* const name =
                std::find(single_names.begin(), single_names.end(), field.name);
            if (name == single_names.end()) continue;
            auto& value = values_.at(static_cast<std::size_t>(name - single_names.begin()));
            if (value) {
                return bad_request(std::string(*name) + ": header field sent more than once",
                                   *name);
            }
            value = field.value;
        }
        return {};
    }

    Refusal check_framing() {
        const auto coding = of(Single::transfer_encoding);
        if (!coding) return {};
        if (!equals_ignoring_case(*coding, "chunked")) {
            return bad_request(
                "Transfer-Encoding: not supported (got " + quoted(*coding) + ", allowed chunked)",
                "Transfer-Encoding");
        }
        if (!of(Single::content_length)) return {};
        // With both, servers and proxies may disagree about the end (RFC 9112, 6.3).
        return bad_request("Content-Length: must not be used with Transfer-Encoding",
                           "Content-Length");
    }

    Refusal check_host() {
        const auto host = of(Single::host);
        if (!host && head_.is_http_1_0) return {};
        // DNS rebinding needs a name.
        if (host && endpoint_.accepts_any_address && is_address(*host)) return {};
        if (!host || !is_host(*host)) return bad_request("missing or invalid Host header", "Host");
        const std::string name = lower_case(*host);
        const std::string_view bare = without_port(name);
        if (!rules_.allowed_hosts.empty()) {
            if (contains(rules_.allowed_hosts, name) || contains(rules_.allowed_hosts, bare))
                return {};
        } else if (!rules_.is_loopback_only || contains(loopback_hosts, bare)) {
            return {};
        }
        return GateRefusal{.status = 421,
                           .code = "wrong_host",
                           .message = "Host header not allowed: " + quoted(name) +
                                      " (see the server setting `allowed_hosts`)"};
    }

    Refusal check_method() {
        if (contains(endpoint_.methods, head_.method)) return {};
        return GateRefusal{.status = 405,
                           .code = "wrong_method",
                           .message = "method not allowed (got " +
                                      std::string(head_.method.substr(0, 20)) + ", allowed " +
                                      endpoint_.allowed_methods() + ")"};
    }

    Refusal check_origin() {
        const auto origin = of(Single::origin);
        if (!origin || contains(rules_.allowed_origins, *origin)) return {};
        const auto host = of(Single::host);
        if (host && !host->empty()) {
            for (const auto scheme : {"http://"sv, "https://"sv}) {
                if (origin->size() == scheme.size() + host->size() &&
                    equals_ignoring_case(origin->substr(0, scheme.size()), scheme) &&
                    equals_ignoring_case(origin->substr(scheme.size()), *host)) {
                    return {};
                }
            }
        }
        return GateRefusal{.status = 403,
                           .code = "forbidden",
                           .message = "origin not allowed: " + quoted(*origin) +
                                      " (see the server setting `allowed_origins`)"};
    }

    [[nodiscard]] bool is_from_this_machine() const {
        constexpr std::array addresses{"127.0.0.1"sv, "::1"sv};
        return rules_.is_loopback_only && contains(addresses, head_.client_host) &&
               contains(addresses, head_.server_host) &&
               contains(loopback_hosts, without_port(lower_case(of(Single::host).value_or("")))) &&
               std::none_of(head_.fields.begin(), head_.fields.end(),
                            [](const http1::Field& field) { return is_of_proxy(field.name); });
    }

    /// The text of the key.
    [[nodiscard]] std::optional<std::string_view> token() const noexcept {
        const std::string_view value = of(Single::authorization).value_or("");
        for (const auto scheme : {"bearer "sv, "token "sv}) {
            if (scheme == "token "sv && !endpoint_.accepts_token) continue;
            if (!equals_ignoring_case(value.substr(0, scheme.size()), scheme)) continue;
            const std::string_view text = value.substr(scheme.size());
            const bool is_valid = !text.empty() && text.size() <= max_key_bytes &&
                                  std::all_of(text.begin(), text.end(), [](char letter) {
                                      return letter > ' ' && letter <= '~';
                                  });
            if (is_valid) return text;
        }
        return std::nullopt;
    }

    const GateRules& rules_;
    const EndpointRules& endpoint_;
    const RequestHead& head_;
    Values values_;
};

}  // namespace

std::string EndpointRules::allowed_methods() const {
    std::string joined;
    for (const std::string& method : methods) joined += (joined.empty() ? "" : ", ") + method;
    return joined;
}

GateDecision admit(const GateRules& rules, const EndpointRules& endpoint, const KeyTable* keys,
                   const RequestHead& head, double now_s) {
    return Check(rules, endpoint, head).run(keys, now_s);
}

bool is_list_field(std::string_view name) noexcept {
    return name == "if-none-match" || name == "prefer";
}

}  // namespace polymux::server
