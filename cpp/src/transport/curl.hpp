// Owners of libcurl's handles, and libcurl's one-time initialization.
#pragma once

#include <curl/curl.h>

#include <memory>

#include "polymux/result.hpp"

namespace polymux::transport {

/// Initializes libcurl once per process. Call it before creating any handle. Any thread.
Result<void> initialise_curl();

/// libcurl's handles are `void` in C++, so each owner names its cleanup function.
template <auto Free>
struct FreedBy {
    template <typename T>
    void operator()(T* handle) const noexcept {
        Free(handle);
    }
};

using EasyHandle = std::unique_ptr<CURL, FreedBy<&curl_easy_cleanup>>;
using MultiHandle = std::unique_ptr<CURLM, FreedBy<&curl_multi_cleanup>>;
using UrlHandle = std::unique_ptr<CURLU, FreedBy<&curl_url_cleanup>>;
using CurlText = std::unique_ptr<char, FreedBy<&curl_free>>;

}  // namespace polymux::transport
