// What went wrong, in words for people.
#pragma once

#include <curl/curl.h>

#include <string>
#include <string_view>

#include "polymux/transport/exchange.hpp"

namespace polymux::transport {

Error no_memory();
Error cancelled(std::string message);

/// "https://server:8443" of a URL: without path, query, and whatever stands before an "@".
std::string origin_of(std::string_view url);

/// What libcurl says of a transfer that failed. `detail` is its own text, empty where it gave none.
struct CurlFailure {
    CURLcode code = CURLE_OK;
    std::string_view detail;
    long os_errno = 0;
    bool connected = false;  ///< The request was on its way.
    bool answered = false;   ///< Some of an answer had come.
    bool unread = false;     ///< What came of it waited for its reader.
};

Error error_of(const CurlFailure& failure, const Request& request, const Deadlines& deadlines);

/// The deadline of that name has passed. `name` is a literal.
Error deadline_passed(std::string_view name, milliseconds length, const Request& request);

}  // namespace polymux::transport
