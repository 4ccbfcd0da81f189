// State shared by a session's engines.
#pragma once

#include <curl/curl.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "polymux/transport/session.hpp"

namespace polymux::transport {

/// Header fields as a libcurl list, without copying text. Its end may be another list. The strings
/// must outlive the list.
class HeaderChain {
public:
    void add(const char* field) {
        nodes_.push_back({const_cast<char*>(field), nullptr});  // NOLINT: libcurl reads it.
    }
    /// Returns the first node. Call it after the last addition.
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

/// A server's treatment of a connection after a stream on it has ended.
enum class AfterStreams : std::uint8_t { unknown, keeps, closes };

/// State shared by a session's engines; it outlives them.
struct SessionCommon {
    explicit SessionCommon(SessionOptions given);

    const SessionOptions options;
    std::string certificates;              ///< Path of the trusted bundle.
    std::optional<Error> no_certificates;  ///< Why there is no bundle: matters only for TLS.
    HeaderChain header_nodes;
    curl_slist* headers = nullptr;
    std::atomic<bool> multiplexes = true;  ///< Until the server has responded without HTTP/2.
    std::atomic<bool> repeatable = false;  ///< The server supports safe repetition.
    std::atomic<AfterStreams> after_streams = AfterStreams::unknown;
    std::atomic<steady_clock::time_point> closed_after_stream;  ///< When it last did so.
};

}  // namespace polymux::transport
