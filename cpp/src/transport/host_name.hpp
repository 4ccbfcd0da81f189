// Names of hosts: their form, and those that are never looked up.
#pragma once

#include <string>
#include <string_view>

namespace polymux::transport {

/// Labels of 1 to 63 letters, digits, '-' and '_' with dots between them, 253 characters at most,
/// the last label not a number (RFC 1123, 2.1; RFC 2181, 11). Lower case is expected.
[[nodiscard]] bool is_host_name(std::string_view name) noexcept;

/// Names that stand for this machine or its own network whatever a resolver says: localhost
/// (RFC 6761), .local (RFC 6762), .home.arpa (RFC 8375), .onion (RFC 7686), .internal (reserved for
/// private use, with the metadata service of a cloud host in it), and what /etc/hosts usually has.
[[nodiscard]] bool is_local_name(std::string_view name) noexcept;

}  // namespace polymux::transport
