// Limits of connections: in total and for each network.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace polymux::server {

/// The part of an address that one subscriber usually has: an IPv4 address, or the /64 network of
/// an IPv6 address. All zero for Unix sockets.
struct Network {
    std::array<std::uint8_t, 8> bytes{};
    bool is_ipv6 = false;
    bool is_this_machine = false;

    auto operator<=>(const Network&) const = default;
};

/// Unix sockets are of this machine.
[[nodiscard]] Network network_of(const sockaddr_storage& address) noexcept;

/// Counts connections. Thread-safe.
class ConnectionLimit {
public:
    /// Without `per_network`: half of the total, but unlimited for this machine, which may run a
    /// proxy.
    ConnectionLimit(std::size_t total, std::optional<std::size_t> per_network)
        : total_(total), per_network_(per_network) {}

    /// Counts a connection, and returns whether it is within both limits.
    bool acquire(const Network& network);
    void release(const Network& network);

private:
    const std::size_t total_;
    const std::optional<std::size_t> per_network_;
    std::mutex mutex_;
    std::size_t count_ = 0;
    std::map<Network, std::size_t> counts_;
};

/// A counted connection, within the limits or not.
class Place {
public:
    Place(std::shared_ptr<ConnectionLimit> limit, const Network& network)
        : limit_(std::move(limit)), network_(network), is_within_(limit_->acquire(network)) {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() { limit_->release(network_); }

    [[nodiscard]] bool is_within_limits() const noexcept { return is_within_; }

private:
    const std::shared_ptr<ConnectionLimit> limit_;
    const Network network_;
    const bool is_within_;
};

}  // namespace polymux::server
