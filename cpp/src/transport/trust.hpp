// Certificate authorities, parsed once per process. libcurl would parse a bundle for each of its
// multi handles, and polymux has one per calling thread, at 20 ms each.
#pragma once

#include <curl/curl.h>

#include <string>

namespace polymux::transport {

/// Makes connections of `easy` trust the authorities in `bundle` (PEM). Each new connection checks
/// the file and parses it again if it has changed.
///
/// @param bundle Path; it must live as long as `easy`. @return False if libcurl refuses the setup.
[[nodiscard]] bool trust(CURL* easy, const std::string& bundle);

}  // namespace polymux::transport
