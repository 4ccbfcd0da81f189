// Compares SSRF protection of URLs and addresses with independent checks. Accepted URLs must be
// http or https to a public address or to a name, as libcurl and the system's address parsers see
// it.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "check.hpp"
#include "polymux/transport/address.hpp"
#include "transport/checked_url.hpp"
#include "transport/curl.hpp"
#include "url_oracle.hpp"

using namespace polymux;
using namespace polymux::transport;

namespace {

bool oracle_says_public(const Address& address) {
    return address.is_ipv6 ? oracle::ipv6_is_public(address.bytes)
                           : oracle::ipv4_is_public(static_cast<std::uint32_t>(
                                 oracle::number(std::span(address.bytes).first(4))));
}

void check_address(const std::uint8_t* data, std::size_t size) {
    Address address;
    address.is_ipv6 = size >= 16;
    std::memcpy(address.bytes.data(), data, address.is_ipv6 ? 16 : std::min<std::size_t>(size, 4));
    POLYMUX_FUZZ_CHECK((blocking_network(address) == nullptr) == oracle_says_public(address));
    POLYMUX_FUZZ_CHECK(parse_address(to_text(address)) == address);
}

std::string part(CURLU* handle, CURLUPart which, unsigned int flags = 0) {
    char* text = nullptr;
    if (curl_url_get(handle, which, &text, flags) != CURLUE_OK) return {};
    const CurlText owner(text);
    return text;
}

/// Runs every address parser that may see this host, including inet_aton's formats.
void check_host(std::string host) {
    POLYMUX_FUZZ_CHECK(!host.empty());
    if (host.front() == '[') host = host.substr(1, host.size() - 2);
    in6_addr ipv6{};
    if (inet_pton(AF_INET6, host.c_str(), &ipv6) == 1) {
        POLYMUX_FUZZ_CHECK(oracle::ipv6_is_public({ipv6.s6_addr, 16}));
        return;
    }
    in_addr ipv4{};
    if (inet_aton(host.c_str(), &ipv4) != 0) {
        POLYMUX_FUZZ_CHECK(oracle::ipv4_is_public(ntohl(ipv4.s_addr)));
        return;
    }
    for (const char each : host) {
        POLYMUX_FUZZ_CHECK((each >= 'a' && each <= 'z') || (each >= '0' && each <= '9') ||
                           each == '-' || each == '_' || each == '.');
    }
    POLYMUX_FUZZ_CHECK(host != "localhost" && !host.ends_with(".localhost"));
    POLYMUX_FUZZ_CHECK(host.front() != '.' && host.back() != '.');
}

void check_allowed(const CheckedUrl& url) {
    for (const char each : url.text)
        POLYMUX_FUZZ_CHECK(each > ' ' && each < '\x7f' && each != '\\');
    // A parser that has not seen the original must read the text like the handle.
    const UrlHandle again(curl_url());
    POLYMUX_FUZZ_CHECK(curl_url_set(again.get(), CURLUPART_URL, url.text.c_str(), 0) == CURLUE_OK);
    for (CURLU* const handle : {url.handle.get(), again.get()}) {
        const std::string scheme = part(handle, CURLUPART_SCHEME);
        POLYMUX_FUZZ_CHECK(scheme == (url.is_https ? "https" : "http"));
        for (const CURLUPart none : {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS,
                                     CURLUPART_ZONEID, CURLUPART_FRAGMENT}) {
            POLYMUX_FUZZ_CHECK(part(handle, none).empty());
        }
        const std::string port = part(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT);
        POLYMUX_FUZZ_CHECK(port == "80" || port == "443");
        check_host(part(handle, CURLUPART_HOST));
    }
    // A second check must give the same URL, so a redirect to it is not a different URL.
    const auto second = check_url(url.text, {});
    POLYMUX_FUZZ_CHECK(second.has_value() && second->text == url.text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    if (data[0] % 4 == 0) {
        check_address(data + 1, size - 1);
    } else if (data[0] % 4 == 1) {
        static const auto base = check_url("https://media.example/a/b?c", {});
        const auto location = resolve_location(*base, text);
        if (!location) return 0;
        if (const auto url = check_url(*location, {}); url) check_allowed(*url);
    } else if (const auto url = check_url(text, {}); url) {
        check_allowed(*url);
    }
    return 0;
}
