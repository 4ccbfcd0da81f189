// Certificate authorities that are parsed once for the process. libcurl parses a bundle anew for
// each of its multi handles, and polymux has one for each thread that calls: 20 ms every time.
#pragma once

#include <curl/curl.h>

#include <string>

namespace polymux::transport {

/// Lets connections of `easy` trust the authorities in `bundle` (PEM). The file is looked at when
/// one is made, and parsed where it has changed since the last time.
///
/// @param bundle Path; it must live as long as `easy`.
/// @return False where libcurl refuses to be set up.
[[nodiscard]] bool trust(CURL* easy, const std::string& bundle);

}  // namespace polymux::transport
