// Blocked addresses: every range with its first, last and middle address and its neighbors. The
// expected ranges are written and compared in a different way than in the core.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "polymux/transport/address.hpp"

using namespace polymux::transport;

namespace {

using Bytes = std::array<std::uint8_t, 16>;

struct Range {
    std::string_view first;
    std::string_view last;
};

// First and last address of each non-public range, from the registries.
constexpr std::array ipv4_ranges{
    Range{"0.0.0.0", "0.255.255.255"},          Range{"10.0.0.0", "10.255.255.255"},
    Range{"100.64.0.0", "100.127.255.255"},     Range{"127.0.0.0", "127.255.255.255"},
    Range{"168.63.129.16", "168.63.129.16"},    Range{"169.254.0.0", "169.254.255.255"},
    Range{"172.16.0.0", "172.31.255.255"},      Range{"192.0.0.0", "192.0.0.255"},
    Range{"192.0.2.0", "192.0.2.255"},          Range{"192.88.99.0", "192.88.99.255"},
    Range{"192.168.0.0", "192.168.255.255"},    Range{"198.18.0.0", "198.19.255.255"},
    Range{"198.51.100.0", "198.51.100.255"},    Range{"203.0.113.0", "203.0.113.255"},
    Range{"224.0.0.0", "239.255.255.255"},      Range{"240.0.0.0", "255.255.255.254"},
    Range{"255.255.255.255", "255.255.255.255"}};

constexpr std::array ipv6_ranges{Range{"::", "::"},
                                 Range{"::1", "::1"},
                                 Range{"::2", "::fffe:ffff:ffff"},
                                 Range{"64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"},
                                 Range{"100::", "100::ffff:ffff:ffff:ffff"},
                                 Range{"100:0:0:1::", "100::1:ffff:ffff:ffff:ffff"},
                                 Range{"2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff"},
                                 Range{"2001:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"},
                                 Range{"2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff"},
                                 Range{"2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff"},
                                 Range{"2001:20::", "2001:2f:ffff:ffff:ffff:ffff:ffff:ffff"},
                                 Range{"2001:30::", "2001:3f:ffff:ffff:ffff:ffff:ffff:ffff"},
                                 Range{"2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"},
                                 Range{"2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
                                 Range{"3ffe::", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
                                 Range{"3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"},
                                 Range{"4000::", "5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
                                 Range{"5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
                                 Range{"5f01::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
                                 Range{"fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
                                 Range{"fe00::", "fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
                                 Range{"fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
                                 Range{"fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
                                 Range{"ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}};

Address address(std::string_view text) {
    const auto parsed = parse_address(text);
    REQUIRE_MESSAGE(parsed.has_value(), text);
    return *parsed;
}

bool refused(const Address& judged) {
    return blocking_network(judged) != nullptr;
}

/// By the ranges alone; for addresses that embed no IPv4 address.
bool in_ranges(const Address& judged, const auto& ranges) {
    const bool beside_global_unicast =
        judged.is_ipv6 && (judged.bytes[0] < 0x20 || judged.bytes[0] > 0x3f);
    return beside_global_unicast || std::ranges::any_of(ranges, [&](const Range& range) {
               return address(range.first).bytes <= judged.bytes &&
                      judged.bytes <= address(range.last).bytes;
           });
}

/// The previous or next address; nothing beyond the ends.
std::optional<Address> neighbour(Address found, int step) {
    for (std::size_t index = found.is_ipv6 ? 16 : 4; index-- > 0;) {
        const int value = found.bytes[index] + step;
        found.bytes[index] = static_cast<std::uint8_t>(value);
        if (value >= 0 && value <= 255) return found;
    }
    return {};
}

/// Halfway between: the first bytes of the first address with the last ones of the range.
Address middle(const Address& first, const Address& last) {
    Address found = first;
    int carry = 0;
    for (std::size_t index = 0; index < 16; ++index) {
        const int sum = first.bytes[index] + last.bytes[index] + carry * 256;
        found.bytes[index] = static_cast<std::uint8_t>(std::min(sum / 2, 255));
        carry = sum % 2;
    }
    return found;
}

Address outer(std::string_view prefix, std::size_t offset, const Address& inner,
              std::uint8_t inverted = 0) {
    Address found = address(prefix);
    for (std::size_t index = 0; index < 4; ++index) {
        found.bytes[offset + index] = static_cast<std::uint8_t>(inner.bytes[index] ^ inverted);
    }
    return found;
}

/// An IPv4 address outside all ranges above.
Address public_ipv4() {
    return Address{.bytes = {8}};
}

}  // namespace

TEST_CASE("every row of the table is refused from its first address to its last") {
    int judged = 0;
    const auto check = [&](const auto& ranges) {
        for (const Range& range : ranges) {
            const Address first = address(range.first);
            const Address last = address(range.last);
            for (const Address& each : {first, middle(first, last), last}) {
                CHECK_MESSAGE(refused(each), range.first, " ", to_text(each));
                ++judged;
            }
            for (const auto& each : {neighbour(first, -1), neighbour(last, 1)}) {
                if (!each || to_text(*each).starts_with("0000:0000:0000:0000:0000:ffff")) continue;
                const bool expected = in_ranges(*each, ranges);
                CHECK_MESSAGE(refused(*each) == expected, range.first, " beside ", to_text(*each));
                ++judged;
            }
        }
    };
    check(ipv4_ranges);
    check(ipv6_ranges);
    CHECK(judged > 190);
}

TEST_CASE("every row of the core's table is among those of this test") {
    for (const ReservedNetwork& row : reserved_networks()) {
        const Address& first = row.network.first;
        CHECK(parse_network(row.text) == row.network);
        CHECK_FALSE(row.purpose.empty());
        CHECK_FALSE(row.source.empty());
        CHECK(refused(first));
        const bool inside =
            first.is_ipv6 ? in_ranges(first, ipv6_ranges) : in_ranges(first, ipv4_ranges);
        CHECK(inside);
    }
}

TEST_CASE("random addresses are judged as the ranges say") {
    std::mt19937_64 random(1);
    int open = 0;
    for (int round = 0; round < 200'000; ++round) {
        Address each;
        each.is_ipv6 = round % 2 == 1;
        for (std::size_t index = 0; index < (each.is_ipv6 ? 16U : 4U); ++index) {
            each.bytes[index] = static_cast<std::uint8_t>(random());
        }
        if (each.is_ipv6 && round % 4 == 1) each.bytes[0] = 0x20;
        const bool expected =
            each.is_ipv6 ? in_ranges(each, ipv6_ranges) : in_ranges(each, ipv4_ranges);
        REQUIRE_MESSAGE(refused(each) == expected, to_text(each));
        if (!expected) ++open;
    }
    CHECK(open > 50'000);
}

TEST_CASE("an IPv4 address inside an IPv6 one is checked as itself") {
    const std::array<std::string_view, 6> alone{"::ffff:0:0", "64:ff9b::"};
    for (const Range& range : ipv4_ranges) {
        const Address inner = address(range.first);
        for (const std::string_view prefix :
             {alone[0], alone[1], std::string_view("::"), std::string_view("64:ff9b:1::")}) {
            CHECK(refused(outer(prefix, 12, inner)));
        }
        CHECK(refused(outer("2002::", 2, inner)));
        CHECK(refused(outer("2001::", 4, inner)));
        CHECK(refused(outer("2001::", 12, inner, 0xff)));
        // ISATAP: the prefix may be any network's.
        CHECK(refused(outer("2a00::5efe:0:0", 12, inner)));
        CHECK(refused(outer("2a00::200:5efe:0:0", 12, inner)));
    }
    CHECK_FALSE(refused(outer("::ffff:0:0", 12, public_ipv4())));
    CHECK_FALSE(refused(outer("64:ff9b::", 12, public_ipv4())));
    CHECK_FALSE(refused(outer("2a00::5efe:0:0", 12, public_ipv4())));
    CHECK(refused(outer("::", 12, public_ipv4())));
    CHECK(refused(outer("64:ff9b:1::", 12, public_ipv4())));
    CHECK(refused(outer("2002::", 2, public_ipv4())));
    CHECK(refused(outer("2001::", 4, public_ipv4())));
}

TEST_CASE("addresses that the standard library of Python once called public") {
    for (const std::string_view text :
         {"::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "fec0::1", "ff02::1",
          "224.0.0.1", "3fff::1", "5f00::1", "192.88.99.1", "168.63.129.16", "100.64.0.1",
          "100.100.100.200", "169.254.169.254", "169.254.170.2", "fd00:ec2::254"}) {
        CHECK_MESSAGE(refused(address(text)), text);
    }
}

TEST_CASE("allowed networks are exempt, also inside IPv6, and no others") {
    const std::vector<Network> allowed{*parse_network("10.1.0.0/16"), *parse_network("::1")};
    CHECK(blocking_network(address("10.1.2.3"), allowed) == nullptr);
    CHECK(blocking_network(address("::ffff:10.1.2.3"), allowed) == nullptr);
    CHECK(blocking_network(address("64:ff9b::10.1.2.3"), allowed) == nullptr);
    CHECK(blocking_network(address("::1"), allowed) == nullptr);
    CHECK(blocking_network(address("10.2.0.0"), allowed) != nullptr);
    CHECK(blocking_network(address("10.0.255.255"), allowed) != nullptr);
    CHECK(blocking_network(address("2002:a01:203::"), allowed) != nullptr);
    CHECK(blocking_network(address("::2"), allowed) != nullptr);
}

TEST_CASE("only one notation of an IPv4 address is accepted") {
    for (const std::string_view text : {"",
                                        "127.1",
                                        "127.0.1",
                                        "2130706433",
                                        "0x7f.0.0.1",
                                        "0177.0.0.1",
                                        "127.0.0.01",
                                        "127.0.0",
                                        "127.0.0.1.",
                                        ".127.0.0.1",
                                        "127.0.0.256",
                                        "127.0.0.1 ",
                                        "+127.0.0.1",
                                        "127.0..1",
                                        "192.0.2.1.5",
                                        "127.0.0.1/8",
                                        "[::1]",
                                        "::1%lo",
                                        ":::1",
                                        "1::2::3",
                                        ":1",
                                        "1:",
                                        "1:2:3",
                                        "1:2:3:4:5:6:7:8:9",
                                        "12345::",
                                        "::g",
                                        "::1.2.3",
                                        "::192.0.2.1:5",
                                        "192.0.2.1::",
                                        "1:2:3:4:5:6:7:192.0.2.1",
                                        "::0192.0.2.1",
                                        "1:2:3:4::5:6:7:8"}) {
        CHECK_MESSAGE(!parse_address(text), text);
    }
    CHECK_FALSE(parse_address(std::string(10'000, ':')));
}

TEST_CASE("addresses round-trip through text") {
    for (const std::string_view text : {"0.0.0.0", "255.255.255.255", "127.0.0.1"}) {
        CHECK(to_text(address(text)) == text);
    }
    CHECK(to_text(address("::")) == "0000:0000:0000:0000:0000:0000:0000:0000");
    CHECK(to_text(address("1:2:3:4:5:6:7:8")) == "0001:0002:0003:0004:0005:0006:0007:0008");
    CHECK(address("::FFFF:127.0.0.1") == address("::ffff:7f00:1"));
    CHECK(address("1:2:3:4:5:6:192.0.2.1") == address("1:2:3:4:5:6:c000:201"));
    CHECK(address("1::") == address("1:0:0:0:0:0:0:0"));
    CHECK(address("1:2:3:4:5:6:7::") == address("1:2:3:4:5:6:7:0"));
    CHECK(address(to_text(address("2001:db8::1"))) == address("2001:db8::1"));
}

TEST_CASE("networks have a prefix and no bits after it") {
    CHECK(parse_network("10.0.0.0/8")->prefix_bits == 8);
    CHECK(parse_network("10.0.0.1")->prefix_bits == 32);
    CHECK(parse_network("fd00::/8")->prefix_bits == 8);
    CHECK(parse_network("::/0")->prefix_bits == 0);
    for (const std::string_view text : {"10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1",
                                        "10.0.0.0/08", "/8", "::1/64", "::/129", "fe80::/9/1"}) {
        CHECK_MESSAGE(!parse_network(text), text);
    }
}
