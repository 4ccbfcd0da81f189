#include "transport/engine_context.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

namespace polymux::transport {

namespace {

constexpr milliseconds max_time_until_closed{1000};

}  // namespace

curl_socket_t EngineContext::socket_at(int local_port) noexcept {
    for (auto& [socket, use] : sockets) {
        if (use.local_port == 0) {
            sockaddr_storage address{};
            socklen_t size = sizeof address;
            if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) continue;
            // The port is at the same offset in both families.
            if (address.ss_family == AF_INET || address.ss_family == AF_INET6) {
                use.local_port = ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port);
            }
        }
        if (use.local_port == local_port) return socket;
    }
    return CURL_SOCKET_BAD;
}

void EngineContext::record_close(curl_socket_t socket, const SocketUse& use) noexcept {
    if (!use.stream_ended || now - *use.stream_ended > max_time_until_closed) return;
    if (has_ended(socket)) {
        session->closed_after_stream.store(now, std::memory_order_relaxed);
        session->after_streams.store(AfterStreams::closes, std::memory_order_relaxed);
    }
}

}  // namespace polymux::transport
