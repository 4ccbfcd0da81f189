// Readable messages for failures.
#pragma once

#include <curl/curl.h>

#include <string>
#include <string_view>

#include "polymux/transport/exchange.hpp"

namespace polymux::transport {

/// Readable: "5 s", "0.25 s".
std::string seconds_text(milliseconds length);

Error no_memory();
Error cancelled(std::string message);

/// "https://server:8443" from a URL: without path, query, and anything before an "@".
std::string origin_of(std::string_view url);

/// libcurl's result for a failed transfer. `detail` is its text, empty if missing.
struct CurlFailure {
    CURLcode code = CURLE_OK;
    std::string_view detail;
    long os_errno = 0;
    int proxy_status = 0;    ///< The proxy refused the connection with this status.
    bool connected = false;  ///< The request was already being sent.
    /// A new TLS connection for which the client has no certificate.
    bool anonymous = false;
    bool answered = false;  ///< A part of the response had arrived.
    bool unread = false;    ///< Received data was waiting for its reader.
};

Error error_of(const CurlFailure& failure, const Request& request, const Deadlines& deadlines);

/// The error for an expired timeout with that name. `name` is a literal.
Error deadline_passed(std::string_view name, milliseconds length, const Request& request);

}  // namespace polymux::transport
