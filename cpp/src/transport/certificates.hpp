// Selects the certificate authorities that TLS trusts: one bundle, chosen at run time.
//
// CURLOPT_CAINFO gets the bundle and CURLOPT_CAPATH null. With a folder, libcurl would look up
// files for each connection, and the libcurl in a wheel has the paths of its build machine.
#pragma once

#include <string>

#include "polymux/result.hpp"

namespace polymux::transport {

/// Returns the path of the bundle in PEM: `explicit_path`; otherwise the value of SSL_CERT_FILE or
/// CURL_CA_BUNDLE; otherwise the first of the systems' usual files. The search runs once per
/// process.
///
/// Returns `tls_failed` if there is no bundle, or if the configured one is not a readable file.
Result<std::string> certificate_bundle(const std::string& explicit_path = {});

}  // namespace polymux::transport
