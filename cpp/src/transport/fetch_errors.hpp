// polymux messages for libcurl's results. libcurl's texts contain addresses; these are fixed.
#pragma once

#include <curl/curl.h>

#include "polymux/result.hpp"

namespace polymux::transport {

/// The error for a result other than CURLE_OK that libcurl itself detected.
[[nodiscard]] Error curl_error(CURLcode outcome);

}  // namespace polymux::transport
