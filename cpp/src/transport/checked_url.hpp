// A URL of a stranger, parsed once by libcurl: the same parse is judged and connected by.
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
    std::string text;                ///< What `handle` says.
    std::string host;                ///< Name in lower case, or address without brackets.
    std::optional<Address> address;  ///< Of a host that is written as an address.
    std::uint16_t port = 0;
    bool is_https = false;
    /// The policy names this host: its addresses are not judged.
    bool host_allowed = false;
};

/// Checks all that can be known without a resolver, an address in the place of a name too.
Result<CheckedUrl> check_url(std::string_view text, const FetchPolicy& policy);

/// Where a redirect from `from` leads: absolute text, which `check_url` has yet to judge.
Result<std::string> resolve_location(const CheckedUrl& from, std::string_view location);

/// Refuses all of them when one is not public. The words never name an address.
Result<void> check_addresses(std::span<const Address> addresses, const CheckedUrl& url,
                             const FetchPolicy& policy);

}  // namespace polymux::transport
