// What an operator lets the guarded fetcher do beyond the public Internet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "polymux/result.hpp"
#include "polymux/transport/address.hpp"

namespace polymux::transport {

/// A host that may be fetched from whatever its addresses are.
struct AllowedHost {
    std::string name;                   ///< Lower case; empty where `address` is set.
    std::optional<Address> address;     ///< Of a host that is written as an address.
    std::optional<std::uint16_t> port;  ///< This port alone, on the policy's list or not.

    bool operator==(const AllowedHost&) const = default;
};

/// The defaults allow the public Internet on the ports of HTTP, and nothing else.
struct FetchPolicy {
    std::vector<AllowedHost> allowed_hosts{};
    /// Networks whose addresses count as public.
    std::vector<Network> allowed_networks{};
    std::vector<std::uint16_t> allowed_ports{80, 443};
    /// False: any certificate will do for `allowed_hosts`, and for no other.
    bool verify_allowed_hosts = true;
};

/// "media.example", "media.example:8080", "127.0.0.1:8080" or "[::1]:8080".
Result<AllowedHost> parse_allowed_host(std::string_view text);

}  // namespace polymux::transport
