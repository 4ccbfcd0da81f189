// Alone in its file: the C library's own header of TCP knows less, and does not go with the
// kernel's.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>

#include "transport/surroundings.hpp"

namespace polymux::transport {

std::uint64_t acknowledged_bytes(curl_socket_t socket) noexcept {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
    // Older kernels know fewer members.
    constexpr std::size_t needed =
        offsetof(tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked;
    return size >= needed ? info.tcpi_bytes_acked : 0;
}

std::uint64_t received_bytes(curl_socket_t socket) noexcept {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
    constexpr std::size_t needed =
        offsetof(tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received;
    return size >= needed ? info.tcpi_bytes_received : 0;
}

std::chrono::milliseconds since_last_byte(curl_socket_t socket) noexcept {
    tcp_info info{};
    socklen_t size = sizeof info;
    const bool known = getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
    return std::chrono::milliseconds(known ? info.tcpi_last_data_recv : 0);
}

}  // namespace polymux::transport
