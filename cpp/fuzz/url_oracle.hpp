// Independent address checks that share no code with the core: numbers and comparisons.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace oracle {

struct Range {
    std::uint32_t first;
    std::uint32_t last;
};

// Not public, from the IANA IPv4 special-purpose registry; 0xA83F8110 is a cloud's metadata
// service.
inline constexpr std::array<Range, 15> ipv4_ranges{{{0x00000000, 0x00FFFFFF},
                                                    {0x0A000000, 0x0AFFFFFF},
                                                    {0x64400000, 0x647FFFFF},
                                                    {0x7F000000, 0x7FFFFFFF},
                                                    {0xA83F8110, 0xA83F8110},
                                                    {0xA9FE0000, 0xA9FEFFFF},
                                                    {0xAC100000, 0xAC1FFFFF},
                                                    {0xC0000000, 0xC00000FF},
                                                    {0xC0000200, 0xC00002FF},
                                                    {0xC0586300, 0xC05863FF},
                                                    {0xC0A80000, 0xC0A8FFFF},
                                                    {0xC6120000, 0xC613FFFF},
                                                    {0xC6336400, 0xC63364FF},
                                                    {0xCB007100, 0xCB0071FF},
                                                    {0xE0000000, 0xFFFFFFFF}}};

inline bool ipv4_is_public(std::uint32_t address) {
    for (const Range& range : ipv4_ranges) {
        if (address >= range.first && address <= range.last) return false;
    }
    return true;
}

inline std::uint64_t number(std::span<const std::uint8_t> bytes) {
    std::uint64_t value = 0;
    for (const std::uint8_t byte : bytes) value = value << 8 | byte;
    return value;
}

/// `bytes` are the sixteen of the address.
inline bool ipv6_is_public(std::span<const std::uint8_t> bytes) {
    const std::uint64_t high = number(bytes.first(8));
    const std::uint64_t low = number(bytes.subspan(8, 8));
    const auto tail = static_cast<std::uint32_t>(low);
    if (high == 0 && low >> 32 == 0xFFFF) return ipv4_is_public(tail);
    if (high == 0x0064FF9B00000000 && low >> 32 == 0) return ipv4_is_public(tail);
    const std::uint64_t interface = low >> 32;
    if ((interface == 0x00005EFE || interface == 0x02005EFE) && !ipv4_is_public(tail)) return false;
    if (high >> 61 != 1) return false;                // 2000::/3
    if (high >> 41 == 0x20010000 >> 9) return false;  // 2001::/23
    if (high >> 32 == 0x20010DB8) return false;
    if (high >> 48 == 0x2002) return false;
    if (high >> 48 == 0x3FFE) return false;
    return high >> 44 != 0x3FFF0;  // 3fff::/20
}

}  // namespace oracle
