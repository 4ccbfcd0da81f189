// What the transfers of one engine share.
#pragma once

#include <curl/curl.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "polymux/stream/chunk_parser.hpp"
#include "polymux/transport/session.hpp"
#include "transport/tcp_facts.hpp"

namespace polymux::transport {

class Transfer;

/// Header fields as libcurl wants them, without a copy of the text: a list whose end may be another
/// list. The strings must stay where they are for as long as it is used.
class HeaderChain {
public:
    void add(const char* field) {
        nodes_.push_back({const_cast<char*>(field), nullptr});  // NOLINT: libcurl reads it.
    }
    /// The first node, once nothing more is added.
    curl_slist* link(curl_slist* tail) noexcept {
        for (std::size_t i = nodes_.size(); i-- > 0;) {
            nodes_[i].next = tail;
            tail = &nodes_[i];
        }
        return tail;
    }
    void clear() noexcept { nodes_.clear(); }

private:
    std::vector<curl_slist> nodes_;
};

/// What a server does to a connection once a stream over it has ended.
enum class AfterStreams : std::uint8_t { unknown, keeps, closes };

/// What a session's engines have in common; it outlives them.
struct SessionCommon {
    explicit SessionCommon(SessionOptions given);

    const SessionOptions options;
    std::string certificates;              ///< The file that is trusted.
    std::optional<Error> no_certificates;  ///< Why there is none: matters over TLS alone.
    HeaderChain header_nodes;
    curl_slist* headers = nullptr;
    std::atomic<bool> multiplexes = true;  ///< Until the server has answered without HTTP/2.
    std::atomic<bool> repeatable = false;  ///< The server has promised it.
    std::atomic<AfterStreams> after_streams = AfterStreams::unknown;
    std::atomic<steady_clock::time_point> closed_after_stream;  ///< When it last did.
};

/// Of an open socket: whose request went over it last, and what was known of it before that.
struct SocketUse {
    Transfer* user = nullptr;
    int local_port = 0;  ///< 0: not asked for yet.
    bool kept = false;   ///< Another request went over it before.
    TcpFacts before;
    /// A stream ended over it then, and nothing has been answered since.
    std::optional<steady_clock::time_point> stream_ended;
};

struct Surroundings {
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
    void learn_from_end(curl_socket_t socket, const SocketUse& use) noexcept;

    std::vector<Transfer*> draining;                       ///< Began to in this round.
    std::optional<steady_clock::time_point> stream_ended;  ///< The last one.
    std::optional<steady_clock::time_point> rested;        ///< A request waited for that.
};

}  // namespace polymux::transport
