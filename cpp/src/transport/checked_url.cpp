#include "transport/checked_url.hpp"

#include <locale.h>  // newlocale, which <clocale> does not declare

#include <algorithm>
#include <charconv>
#include <string>

#include "ascii.hpp"
#include "path_text.hpp"
#include "transport/host_name.hpp"
#include "transport/url_text.hpp"

namespace polymux::transport {
namespace {

std::optional<std::uint16_t> parse_port(std::string_view text) noexcept {
    std::uint16_t port = 0;
    const auto [end, outcome] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (outcome != std::errc() || end != text.data() + text.size() || port == 0) return {};
    return port;
}

bool is_ascii(std::string_view text) noexcept {
    return std::ranges::all_of(text,
                               [](char each) { return static_cast<unsigned char>(each) < 0x80; });
}

/// A part of the parsed URL; empty if missing.
std::string part(CURLU* handle, CURLUPart which, unsigned int flags = 0) {
    char* text = nullptr;
    const CURLUcode outcome = curl_url_get(handle, which, &text, flags);
    const CurlText owner(
        text);  // Up to 8.x, a host that is not a valid IDN fails but leaves its text behind.
    return outcome == CURLUE_OK ? std::string(text) : std::string();
}

std::size_t labels(std::string_view name) noexcept {
    return static_cast<std::size_t>(std::ranges::count(name, '.')) + 1;
}

/// Whether each label with non-ASCII characters became a separate encoded label, and each other
/// label is unchanged. Rejects full-width digits, circled letters and other dots: IDNA maps them to
/// plain ASCII, so they disguise a name and are not an internationalized one.
bool is_honest_idn(std::string_view written, std::string_view encoded) {
    if (labels(written) != labels(encoded)) return false;
    while (!written.empty()) {
        const std::string_view label = written.substr(0, written.find('.'));
        const std::string_view other = encoded.substr(0, encoded.find('.'));
        if (is_ascii(label) ? lower_case(label) != lower_case(other)
                            : !lower_case(other).starts_with("xn--")) {
            return false;
        }
        written.remove_prefix(std::min(written.size(), label.size() + 1));
        encoded.remove_prefix(std::min(encoded.size(), other.size() + 1));
    }
    return true;
}

/// libcurl's IDNA decodes a host in the encoding of the thread's locale. The host is UTF-8, so this
/// sets a UTF-8 locale, whatever the program uses.
class Utf8Locale {
public:
    Utf8Locale()
        : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)),
          before_(locale_ != nullptr ? uselocale(locale_) : nullptr) {}
    ~Utf8Locale() {
        if (locale_ == nullptr) return;
        uselocale(before_);
        freelocale(locale_);
    }
    Utf8Locale(const Utf8Locale&) = delete;
    Utf8Locale& operator=(const Utf8Locale&) = delete;
    [[nodiscard]] bool is_set() const noexcept { return locale_ != nullptr; }

private:
    locale_t locale_;
    locale_t before_;
};

/// The host in ASCII; empty if it cannot be a host name.
std::string ascii_host(CURLU* handle) {
    std::string written = part(handle, CURLUPART_HOST);
    if (is_ascii(written)) return written;
#if LIBCURL_VERSION_NUM >= 0x075800
    const Utf8Locale locale;
    if (!locale.is_set()) return {};
    std::string encoded = part(handle, CURLUPART_HOST, CURLU_PUNYCODE);
    if (is_ascii(encoded) && is_honest_idn(written, encoded)) return encoded;
#endif
    return {};
}

Result<void> read_host(CheckedUrl& url) {
    std::string host = lower_case(ascii_host(url.handle.get()));
    if (host.empty()) {
        return refused_url(
            "its host is not a valid host name. Write an internationalized name in ASCII "
            "(xn--...)");
    }
    if (host.front() == '[') {
        url.host = host.substr(1, host.size() - 2);
        url.address = parse_address(url.host);
        if (!url.address || !url.address->is_ipv6)
            return refused_url("its host is not a valid IPv6 address");
        return {};
    }
    if (host.back() == '.') host.pop_back();  // The root label, which does not change the name.
    url.address = parse_address(host);
    if (!url.address && !is_host_name(host)) {
        return refused_url("its host is neither a valid host name nor an IP address");
    }
    url.host = host;
    if (curl_url_set(url.handle.get(), CURLUPART_HOST, host.c_str(), 0) != CURLUE_OK) {
        return refused_url("its host is invalid");
    }
    return {};
}

Error refused_port(std::uint16_t port, const FetchPolicy& policy) {
    std::string allowed;
    for (const std::uint16_t one : policy.allowed_ports) {
        allowed += (allowed.empty() ? "" : ", ") + std::to_string(one);
    }
    return refused_url("port " + std::to_string(port) +
                       " is not allowed (allowed: " + (allowed.empty() ? "none" : allowed) + ")");
}

bool matches(const AllowedHost& allowed, const CheckedUrl& url) {
    const bool same_host =
        url.address ? allowed.address == url.address : !allowed.address && allowed.name == url.host;
    return same_host && (!allowed.port || allowed.port == url.port);
}

Result<void> apply_policy(CheckedUrl& url, const FetchPolicy& policy) {
    bool port_allowed =
        std::ranges::find(policy.allowed_ports, url.port) != policy.allowed_ports.end();
    for (const AllowedHost& allowed : policy.allowed_hosts) {
        if (!matches(allowed, url)) continue;
        url.host_allowed = true;
        port_allowed = port_allowed || allowed.port.has_value();
    }
    if (!port_allowed) return refused_port(url.port, policy);
    if (!url.host_allowed && !url.address && is_local_name(url.host)) {
        return refused_url("its host name belongs to the local network");
    }
    if (url.address) return check_addresses({&*url.address, 1}, url, policy);
    return {};
}

/// "name:" at the start of a reference, which makes it absolute (RFC 3986, 4.1).
bool has_scheme(std::string_view reference) noexcept {
    const std::size_t end = reference.find_first_of(":/?#");
    return end != std::string_view::npos && reference[end] == ':';
}

}  // namespace

Result<CheckedUrl> check_url(std::string_view text, const FetchPolicy& policy) {
    if (auto checked = check_url_bytes(text); !checked) return checked.error();
    if (auto checked = check_url_form(text); !checked) return checked.error();
    CheckedUrl url;
    url.handle.reset(curl_url());
    CURLU* const handle = url.handle.get();
    if (handle == nullptr) {
        return Error{.code = ErrorCode::out_of_memory,
                     .message = "not enough memory to parse a URL"};
    }
    // URLENCODE is for non-ASCII letters in path and query; blanks were rejected before.
    if (curl_url_set(handle, CURLUPART_URL, std::string(text).c_str(),
                     CURLU_DISALLOW_USER | CURLU_URLENCODE) != CURLUE_OK) {
        return refused_url("its syntax is invalid");
    }
    curl_url_set(handle, CURLUPART_FRAGMENT, nullptr, 0);
    const std::string scheme = part(handle, CURLUPART_SCHEME);
    url.is_https = scheme == "https";
    if (!url.is_https && scheme != "http") {
        return refused_url("it must begin with http:// or https://");
    }
    if (auto read = read_host(url); !read) return read.error();
    const auto port = parse_port(part(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT));
    if (!port) return refused_url("its port is invalid (allowed 1 to 65535)");
    url.port = *port;
    url.text = part(handle, CURLUPART_URL);
    if (url.text.empty()) return refused_url("its syntax is invalid");
    if (auto allowed = apply_policy(url, policy); !allowed) return allowed.error();
    return url;
}

Result<std::string> resolve_location(const CheckedUrl& from, std::string_view location) {
    if (auto checked = check_url_bytes(location); !checked) return checked.error();
    if (has_scheme(location)) return std::string(location);
    if (location.starts_with("//")) {
        return (from.is_https ? "https:" : "http:") + std::string(location);
    }
    const UrlHandle joined(curl_url_dup(from.handle.get()));
    if (joined == nullptr ||
        curl_url_set(joined.get(), CURLUPART_URL, std::string(location).c_str(), CURLU_URLENCODE) !=
            CURLUE_OK) {
        return refused_url("its syntax is invalid");
    }
    return part(joined.get(), CURLUPART_URL);
}

Result<void> check_addresses(std::span<const Address> addresses, const CheckedUrl& url,
                             const FetchPolicy& policy) {
    if (url.host_allowed) return {};
    for (const Address& address : addresses) {
        if (blocking_network(address, policy.allowed_networks) != nullptr) {
            return refused_url("its host is not on the public Internet");
        }
    }
    return {};
}

Result<AllowedHost> parse_allowed_host(std::string_view text) {
    const Error wrong{
        .code = ErrorCode::invalid_argument,
        .message = "invalid allowed host (got " + quoted_path(text) +
                   ", allowed an ASCII host name or an IP address, IPv6 in brackets, each "
                   "with or without a port, such as media.example:8080)"};
    AllowedHost allowed;
    std::string_view host = text;
    const std::size_t colon = text.rfind(':');
    if (colon != std::string_view::npos && !text.ends_with(']')) {
        allowed.port = parse_port(text.substr(colon + 1));
        host = text.substr(0, colon);
        if (!allowed.port) return wrong;
    }
    if (host.starts_with('[') && host.ends_with(']')) {
        allowed.address = parse_address(host.substr(1, host.size() - 2));
        if (!allowed.address || !allowed.address->is_ipv6) return wrong;
        return allowed;
    }
    allowed.name = lower_case(host);
    if (allowed.name.ends_with('.')) allowed.name.pop_back();
    allowed.address = parse_address(allowed.name);
    if (allowed.address && allowed.address->is_ipv6) return wrong;
    if (allowed.address) {
        allowed.name.clear();
    } else if (!is_host_name(allowed.name)) {
        return wrong;
    }
    return allowed;
}

}  // namespace polymux::transport
