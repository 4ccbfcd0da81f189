// IP addresses as bytes, and which of them untrusted input may connect to.
//
// Addresses are checked only in binary form, because their text has too many notations.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace polymux::transport {

/// An IPv4 or IPv6 address in network byte order. The last twelve bytes of an IPv4 address are 0.
struct Address {
    std::array<std::uint8_t, 16> bytes{};
    bool is_ipv6 = false;

    constexpr bool operator==(const Address&) const = default;
};

/// All addresses whose first `prefix_bits` bits equal those of `first`.
struct Network {
    Address first;
    int prefix_bits = 0;

    [[nodiscard]] constexpr bool contains(const Address& address) const noexcept {
        if (address.is_ipv6 != first.is_ipv6) return false;
        const auto total_bytes = static_cast<std::size_t>(prefix_bits / 8);
        for (std::size_t index = 0; index < total_bytes; ++index) {
            if (address.bytes[index] != first.bytes[index]) return false;
        }
        const int rest_bits = prefix_bits % 8;
        if (rest_bits == 0) return true;
        const int difference = address.bytes[total_bytes] ^ first.bytes[total_bytes];
        return (difference >> (8 - rest_bits)) == 0;
    }

    constexpr bool operator==(const Network&) const = default;
};

/// A network outside the public Internet.
struct ReservedNetwork {
    std::string_view text;     ///< As text: "10.0.0.0/8".
    Network network;           ///< The same in binary.
    std::string_view purpose;  ///< "private use"
    std::string_view source;   ///< Source: "RFC 1918".
};

/// Parses four decimal numbers without leading zeros (RFC 6943, 3.1.1, strict), or IPv6 text (RFC
/// 4291, 2.2) without brackets and without a zone. Returns nothing for any other text.
[[nodiscard]] std::optional<Address> parse_address(std::string_view text) noexcept;

/// Parses "10.0.0.0/8", "fd00::/8", or a single address. Returns nothing if bits after the prefix
/// are set.
[[nodiscard]] std::optional<Network> parse_network(std::string_view text) noexcept;

/// Lower-case text that `parse_address` reads.
[[nodiscard]] std::string to_text(const Address& address);

/// All blocked networks, in search order. The last row covers IPv6 outside of global unicast.
[[nodiscard]] std::span<const ReservedNetwork> reserved_networks() noexcept;

/// Returns the network that blocks this address for untrusted input. Returns null if the address is
/// public, or inside one of `allowed`.
///
/// Addresses that embed an IPv4 address are checked by that one too: IPv4-mapped and NAT64
/// (64:ff9b::/96) by it alone; IPv4-compatible, 6to4, Teredo, local NAT64 and ISATAP by both.
[[nodiscard]] const ReservedNetwork* blocking_network(
    const Address& address, std::span<const Network> allowed = {}) noexcept;

}  // namespace polymux::transport
