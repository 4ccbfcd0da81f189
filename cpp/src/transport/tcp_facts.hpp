// The kernel's information about a connection.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <cstdint>

namespace polymux::transport {

struct TcpFacts {
    std::uint64_t sent_bytes = 0;          ///< 0 if unknown, as for the other counts.
    std::uint64_t acknowledged_bytes = 0;  ///< Sent bytes that the peer has acknowledged.
    std::uint64_t received_bytes = 0;
    std::chrono::milliseconds since_last_byte{0};  ///< Time since the last received byte.
};

TcpFacts tcp_facts(curl_socket_t socket) noexcept;

/// Whether the peer has reset the connection, or does so within `max_wait`.
bool is_reset(curl_socket_t socket, std::chrono::milliseconds max_wait) noexcept;

/// Whether the peer has closed the connection.
bool has_ended(curl_socket_t socket) noexcept;

}  // namespace polymux::transport
