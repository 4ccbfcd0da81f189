#include "server/connection_limit.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace polymux::server {

Network network_of(const sockaddr_storage& address) noexcept {
    Network found;
    if (address.ss_family == AF_INET) {
        sockaddr_in ipv4{};
        std::memcpy(&ipv4, &address, sizeof ipv4);
        std::memcpy(found.bytes.data(), &ipv4.sin_addr, 4);
        found.is_this_machine = found.bytes[0] == 127;
        return found;
    }
    if (address.ss_family == AF_INET6) {
        sockaddr_in6 ipv6{};
        std::memcpy(&ipv6, &address, sizeof ipv6);
        const auto* const bytes = ipv6.sin6_addr.s6_addr;
        if (IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr)) {
            std::memcpy(found.bytes.data(), bytes + 12, 4);
            found.is_this_machine = found.bytes[0] == 127;
            return found;
        }
        std::memcpy(found.bytes.data(), bytes, found.bytes.size());
        found.is_ipv6 = true;
        found.is_this_machine = IN6_IS_ADDR_LOOPBACK(&ipv6.sin6_addr);
        return found;
    }
    found.is_this_machine = true;
    return found;
}

bool ConnectionLimit::acquire(const Network& network) {
    const std::scoped_lock lock(mutex_);
    ++count_;
    const std::size_t count = ++counts_[network];
    const std::size_t most = per_network_.value_or(
        network.is_this_machine ? total_ : std::max<std::size_t>(1, total_ / 2));
    return count <= most && count_ <= total_;
}

void ConnectionLimit::release(const Network& network) {
    const std::scoped_lock lock(mutex_);
    --count_;
    const auto found = counts_.find(network);
    if (--found->second == 0) counts_.erase(found);
}

}  // namespace polymux::server
