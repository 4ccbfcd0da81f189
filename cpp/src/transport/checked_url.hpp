// A URL from untrusted input. libcurl parses it once; both the checks and the connection use that
// result.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "polymux/result.hpp"
#include "polymux/transport/address.hpp"
#include "polymux/transport/fetch_policy.hpp"
#include "transport/curl.hpp"

namespace polymux::transport {

struct CheckedUrl {
    UrlHandle handle;                ///< For CURLOPT_CURLU; without a fragment.
    std::string text;                ///< The text of `handle`.
    std::string host;                ///< Lower-case name, or address without brackets.
    std::optional<Address> address;  ///< For a host given as an address.
    std::uint16_t port = 0;
    bool is_https = false;
    /// The policy allows this host by name: its addresses are not checked.
    bool host_allowed = false;
};

/// Checks everything that needs no resolver, including a host given as an address.
Result<CheckedUrl> check_url(std::string_view text, const FetchPolicy& policy);

/// The target of a redirect from `from`, as absolute text. Pass it to `check_url` next.
Result<std::string> resolve_location(const CheckedUrl& from, std::string_view location);

/// Refuses the whole list if any address is not public. The message never contains an address.
Result<void> check_addresses(std::span<const Address> addresses, const CheckedUrl& url,
                             const FetchPolicy& policy);

}  // namespace polymux::transport
