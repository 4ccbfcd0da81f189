// What the kernel knows of a connection.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <cstdint>

namespace polymux::transport {

struct TcpFacts {
    std::uint64_t sent_bytes = 0;          ///< 0 where that is not known; so the others.
    std::uint64_t acknowledged_bytes = 0;  ///< Of those sent, by the peer.
    std::uint64_t received_bytes = 0;
    std::chrono::milliseconds since_last_byte{0};  ///< How long nothing has come.
};

TcpFacts tcp_facts(curl_socket_t socket) noexcept;

/// Whether the peer has reset the connection, or does so before `max_wait` is over.
bool is_reset(curl_socket_t socket, std::chrono::milliseconds max_wait) noexcept;

/// Whether the peer has ended the connection.
bool has_ended(curl_socket_t socket) noexcept;

}  // namespace polymux::transport
