// Which certificate authorities TLS trusts: one bundle, chosen at run time.
//
// CURLOPT_CAINFO gets the bundle and CURLOPT_CAPATH null: with a folder libcurl would look up files
// for each connection, and a wheel's libcurl has the paths of the machine that built it.
#pragma once

#include <string>

#include "polymux/result.hpp"

namespace polymux::transport {

/// Path of the bundle in PEM: `explicit_path`; else what SSL_CERT_FILE or CURL_CA_BUNDLE names;
/// else the first of the files that systems keep. The search happens once for the process.
///
/// `tls_failed` where there is none, or where the one that was named is no readable file.
Result<std::string> certificate_bundle(const std::string& explicit_path = {});

}  // namespace polymux::transport
