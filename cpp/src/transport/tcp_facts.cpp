// In a separate file, because the C library's TCP header lacks fields and conflicts with the
// kernel's.
#include "transport/tcp_facts.hpp"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

namespace polymux::transport {

TcpFacts tcp_facts(curl_socket_t socket) noexcept {
    // Older kernels have fewer members; missing ones stay 0.
    tcp_info info{};
    socklen_t size = sizeof info;
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
    return {.sent_bytes = info.tcpi_bytes_sent,
            .acknowledged_bytes = info.tcpi_bytes_acked,
            .received_bytes = info.tcpi_bytes_received,
            .since_last_byte = std::chrono::milliseconds(info.tcpi_last_data_recv)};
}

bool is_reset(curl_socket_t socket, std::chrono::milliseconds max_wait) noexcept {
    // A close by the peer alone is not POLLHUP, because this side could still send.
    pollfd watched{.fd = socket, .events = 0, .revents = 0};
    return ::poll(&watched, 1, static_cast<int>(max_wait.count())) > 0 &&
           (watched.revents & (POLLHUP | POLLERR)) != 0;
}

bool has_ended(curl_socket_t socket) noexcept {
    char byte = 0;
    return ::recv(socket, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) == 0;
}

}  // namespace polymux::transport
