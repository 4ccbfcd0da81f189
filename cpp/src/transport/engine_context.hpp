// What the transfers of one engine share.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "polymux/stream/chunk_parser.hpp"
#include "transport/session_common.hpp"
#include "transport/tcp_facts.hpp"

namespace polymux::transport {

class Transfer;

/// Of an open socket: whose request went over it last, and what was known of it before that.
struct SocketUse {
    Transfer* user = nullptr;
    int local_port = 0;  ///< 0: not asked for yet.
    bool kept = false;   ///< Another request went over it before.
    TcpFacts before;
    /// A stream ended over it then, and nothing has been answered since.
    std::optional<steady_clock::time_point> stream_ended;
};

struct EngineContext {
    std::shared_ptr<SessionCommon> session;
    steady_clock::time_point now = steady_clock::now();  ///< Of this round.
    stream::ChunkParser parser;
    int epoll = -1;  ///< Where the sockets are watched.
    std::unordered_map<curl_socket_t, SocketUse> sockets;
    /// The socket with that port on this side: libcurl tells nothing else of a connection before it
    /// sends. CURL_SOCKET_BAD where there is none.
    curl_socket_t socket_at(int local_port) noexcept;
    /// A connection closes: where the server closed it as soon as a stream had ended, it will do so
    /// again.
    void record_close(curl_socket_t socket, const SocketUse& use) noexcept;

    std::vector<Transfer*> draining;                        ///< Began to in this round.
    std::optional<steady_clock::time_point> stream_ended;   ///< The last one.
    std::optional<steady_clock::time_point> last_hold_off;  ///< A request waited for that.
};

}  // namespace polymux::transport
