// What a session's engines have in common.
#pragma once

#include <curl/curl.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "polymux/transport/session.hpp"

namespace polymux::transport {

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

}  // namespace polymux::transport
