// Facts about HTTP/2 streams that libcurl reports only in its log.
#pragma once

#include <cstdint>
#include <string_view>

namespace polymux::transport {

/// The meaning of a log line.
struct Http2Event {
    enum class Kind : std::uint8_t {
        none,
        opened,     ///< The request has the stream `stream`.
        goaway,     ///< The server will process no streams above `stream` of the connection.
        refused,    ///< The server has not processed the request (RFC 9113, 8.7).
        resending,  ///< libcurl is about to send the request again.
    };
    Kind kind = Kind::none;
    std::uint32_t stream = 0;
};

/// Reads a line of libcurl 7.88 to 8.22. Lines of other versions that differ mean nothing.
Http2Event read_http2_log(std::string_view line) noexcept;

}  // namespace polymux::transport
