// State shared by the transfers of one engine.
#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "polymux/stream/chunk_parser.hpp"
#include "transport/session_common.hpp"
#include "transport/tcp_facts.hpp"

namespace polymux::transport {

class Transfer;

/// For an open socket: the transfer whose request used it last, and the connection's state before
/// that.
struct SocketUse {
    Transfer* user = nullptr;
    int local_port = 0;  ///< 0: not queried yet.
    bool kept = false;   ///< Another request used it before.
    TcpFacts before;
    /// When a stream ended on it, if no response has completed since.
    std::optional<steady_clock::time_point> stream_ended;
    /// HTTP/2: the highest stream that the server may process. Shared, because a transfer may need
    /// it after the connection has closed.
    std::shared_ptr<std::uint32_t> last_stream =
        std::make_shared<std::uint32_t>(std::numeric_limits<std::uint32_t>::max());
};

struct EngineContext {
    std::shared_ptr<SessionCommon> session;
    steady_clock::time_point now = steady_clock::now();  ///< Time of the current round.
    stream::ChunkParser parser;
    int epoll = -1;  ///< The epoll instance of the sockets.
    std::unordered_map<curl_socket_t, SocketUse> sockets;
    /// Finds the socket with that local port, which is all that libcurl reports about a connection
    /// before sending. CURL_SOCKET_BAD if there is none.
    curl_socket_t socket_at(int local_port) noexcept;
    /// Records a close: if the server closed the connection right after a stream ended, it will do
    /// so again.
    void record_close(curl_socket_t socket, const SocketUse& use) noexcept;

    std::vector<Transfer*> draining;                        ///< Started draining in this round.
    std::optional<steady_clock::time_point> stream_ended;   ///< When the last stream ended.
    std::optional<steady_clock::time_point> last_hold_off;  ///< When a request last waited.
};

}  // namespace polymux::transport
