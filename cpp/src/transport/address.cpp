#include "polymux/transport/address.hpp"

#include <algorithm>
#include <string>

#include "transport/address_text.hpp"

namespace polymux::transport {
namespace {

consteval ReservedNetwork row(std::string_view text, std::string_view purpose,
                              std::string_view source) {
    return {.text = text,
            .network = address_text::network(text).value(),  // An invalid row does not compile.
            .purpose = purpose,
            .source = source};
}

// IANA's special-purpose registries (RFC 6890 and its successors) without the few globally
// reachable entries, plus networks with other established special uses.
constexpr std::array table{
    row("0.0.0.0/8", "this host on this network", "RFC 791, 3.2"),
    row("10.0.0.0/8", "private use", "RFC 1918"),
    row("100.64.0.0/10", "carrier-grade NAT", "RFC 6598"),
    row("127.0.0.0/8", "loopback", "RFC 1122"),
    row("168.63.129.16/32", "platform services of a cloud provider", "Azure's documentation"),
    row("169.254.0.0/16", "link-local, metadata of cloud providers", "RFC 3927"),
    row("172.16.0.0/12", "private use", "RFC 1918"),
    row("192.0.0.0/24", "protocol assignments", "RFC 6890"),
    row("192.0.2.0/24", "documentation", "RFC 5737"),
    row("192.88.99.0/24", "6to4 relays (deprecated)", "RFC 7526"),
    row("192.168.0.0/16", "private use", "RFC 1918"),
    row("198.18.0.0/15", "benchmarking", "RFC 2544"),
    row("198.51.100.0/24", "documentation", "RFC 5737"),
    row("203.0.113.0/24", "documentation", "RFC 5737"),
    row("224.0.0.0/4", "multicast", "RFC 5771"),
    row("255.255.255.255/32", "broadcast", "RFC 919"),
    row("240.0.0.0/4", "reserved", "RFC 1112, 4"),
    row("::/128", "unspecified", "RFC 4291, 2.5.2"),
    row("::1/128", "loopback", "RFC 4291, 2.5.3"),
    row("::/96", "IPv4-compatible (deprecated)", "RFC 4291, 2.5.5"),
    row("64:ff9b:1::/48", "local-use NAT64", "RFC 8215"),
    row("100::/64", "discard-only", "RFC 6666"),
    row("100:0:0:1::/64", "dummy IPv6 prefix", "RFC 9780"),
    row("2001::/32", "Teredo", "RFC 4380"),
    row("2001:2::/48", "benchmarking", "RFC 5180"),
    row("2001:10::/28", "ORCHID (deprecated)", "RFC 4843"),
    row("2001:20::/28", "ORCHIDv2", "RFC 7343"),
    row("2001:30::/28", "drone remote identification", "RFC 9374"),
    row("2001::/23", "protocol assignments", "RFC 2928"),
    row("2001:db8::/32", "documentation", "RFC 3849"),
    row("2002::/16", "6to4", "RFC 3056, RFC 7526"),
    row("3ffe::/16", "6bone (ended)", "RFC 3701"),
    row("3fff::/20", "documentation", "RFC 9637"),
    row("5f00::/16", "segment routing", "RFC 9602"),
    row("fc00::/7", "unique local", "RFC 4193"),
    row("fe80::/10", "link-local", "RFC 4291, 2.5.6"),
    row("fec0::/10", "site-local (deprecated)", "RFC 3879"),
    row("ff00::/8", "multicast", "RFC 4291, 2.7"),
    // Checked last, and only for IPv6 addresses outside of `global_unicast`.
    row("::/0", "not global unicast", "IANA, IPv6 address space"),
};

constexpr Network global_unicast = address_text::network("2000::/3").value();
constexpr Network ipv4_mapped = address_text::network("::ffff:0:0/96").value();
constexpr Network ipv4_compatible = address_text::network("::/96").value();
constexpr Network nat64 = address_text::network("64:ff9b::/96").value();
constexpr Network local_nat64 = address_text::network("64:ff9b:1::/48").value();
constexpr Network six_to_four = address_text::network("2002::/16").value();
constexpr Network teredo = address_text::network("2001::/32").value();

/// The IPv4 address in four bytes of `outer`, from `offset`; Teredo inverts them.
constexpr Address inner(const Address& outer, std::size_t offset, std::uint8_t inverted = 0) {
    Address found;
    for (std::size_t index = 0; index < 4; ++index) {
        found.bytes[index] = static_cast<std::uint8_t>(outer.bytes[offset + index] ^ inverted);
    }
    return found;
}

/// Interface identifier 0000:5efe or 0200:5efe before an IPv4 address (RFC 5214, 6.1).
constexpr bool is_isatap(const Address& address) {
    return (address.bytes[8] == 0 || address.bytes[8] == 2) && address.bytes[9] == 0 &&
           address.bytes[10] == 0x5e && address.bytes[11] == 0xfe;
}

const ReservedNetwork* in_table(const Address& address) noexcept {
    const auto rows = std::span(table).first(table.size() - 1);
    const auto found = std::ranges::find_if(
        rows, [&](const ReservedNetwork& each) { return each.network.contains(address); });
    if (found != rows.end()) return &*found;
    return address.is_ipv6 && !global_unicast.contains(address) ? &table.back() : nullptr;
}

/// Why the embedded IPv4 addresses block an address that is not checked by them alone.
const ReservedNetwork* why_inner_refused(const Address& address,
                                         std::span<const Network> allowed) noexcept {
    const ReservedNetwork* found = nullptr;
    if (ipv4_compatible.contains(address) || local_nat64.contains(address) || is_isatap(address)) {
        found = blocking_network(inner(address, 12), allowed);
    } else if (six_to_four.contains(address)) {
        found = blocking_network(inner(address, 2), allowed);
    } else if (teredo.contains(address)) {
        found = blocking_network(inner(address, 4), allowed);
        if (found == nullptr) found = blocking_network(inner(address, 12, 0xff), allowed);
    }
    return found;
}

}  // namespace

std::optional<Address> parse_address(std::string_view text) noexcept {
    return address_text::address(text);
}

std::optional<Network> parse_network(std::string_view text) noexcept {
    return address_text::network(text);
}

std::string to_text(const Address& address) {
    std::string text;
    if (!address.is_ipv6) {
        for (std::size_t index = 0; index < 4; ++index) {
            text += (index > 0 ? "." : "") + std::to_string(address.bytes[index]);
        }
        return text;
    }
    constexpr std::string_view digits = "0123456789abcdef";
    for (std::size_t index = 0; index < 16; ++index) {
        if (index > 0 && index % 2 == 0) text += ':';
        text += digits[address.bytes[index] >> 4];
        text += digits[address.bytes[index] & 0xf];
    }
    return text;
}

std::span<const ReservedNetwork> reserved_networks() noexcept {
    return table;
}

const ReservedNetwork* blocking_network(const Address& address,
                                        std::span<const Network> allowed) noexcept {
    if (std::ranges::any_of(allowed, [&](const Network& each) { return each.contains(address); })) {
        return nullptr;
    }
    if (ipv4_mapped.contains(address) || nat64.contains(address)) {
        return blocking_network(inner(address, 12), allowed);
    }
    const ReservedNetwork* const embedded = why_inner_refused(address, allowed);
    return embedded != nullptr ? embedded : in_table(address);
}

}  // namespace polymux::transport
