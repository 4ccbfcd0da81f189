// Exceptions to SSRF protection that an operator configures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "polymux/result.hpp"
#include "polymux/transport/address.hpp"

namespace polymux::transport {

/// A host that may be fetched from at any address.
struct AllowedHost {
    std::string name;                   ///< Lower case; empty if `address` is set.
    std::optional<Address> address;     ///< For a host given as an address.
    std::optional<std::uint16_t> port;  ///< Only this port, listed or not.

    bool operator==(const AllowedHost&) const = default;
};

/// The defaults allow only the public Internet on the HTTP ports.
struct FetchPolicy {
    std::vector<AllowedHost> allowed_hosts{};
    /// Networks whose addresses count as public.
    std::vector<Network> allowed_networks{};
    std::vector<std::uint16_t> allowed_ports{80, 443};
    /// False: accept any certificate for `allowed_hosts`, but not for other hosts.
    bool verify_allowed_hosts = true;
};

/// "media.example", "media.example:8080", "127.0.0.1:8080" or "[::1]:8080".
Result<AllowedHost> parse_allowed_host(std::string_view text);

}  // namespace polymux::transport
