// Converts the system's socket addresses.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <optional>

#include "polymux/transport/address.hpp"

namespace polymux::transport {

struct Endpoint {
    Address address;
    std::uint16_t port = 0;
};

/// Returns nothing for families other than IPv4 and IPv6.
inline std::optional<Endpoint> endpoint(const sockaddr* generic, std::size_t size) noexcept {
    Endpoint found;
    if (generic->sa_family == AF_INET && size >= sizeof(sockaddr_in)) {
        sockaddr_in ipv4{};
        std::memcpy(&ipv4, generic, sizeof ipv4);
        std::memcpy(found.address.bytes.data(), &ipv4.sin_addr, 4);
        found.port = ntohs(ipv4.sin_port);
        return found;
    }
    if (generic->sa_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
        sockaddr_in6 ipv6{};
        std::memcpy(&ipv6, generic, sizeof ipv6);
        std::memcpy(found.address.bytes.data(), &ipv6.sin6_addr, 16);
        found.address.is_ipv6 = true;
        found.port = ntohs(ipv6.sin6_port);
        return found;
    }
    return {};
}

}  // namespace polymux::transport
