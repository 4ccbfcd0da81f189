// libcurl's outcomes in our words. Its own texts name addresses; these are fixed.
#pragma once

#include <curl/curl.h>

#include "polymux/result.hpp"

namespace polymux::transport {

/// The error for an outcome other than CURLE_OK that is libcurl's own finding.
[[nodiscard]] Error curl_error(CURLcode outcome);

}  // namespace polymux::transport
