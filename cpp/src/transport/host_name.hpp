// Host names: their syntax, and names that are never resolved.
#pragma once

#include <string>
#include <string_view>

namespace polymux::transport {

/// Labels of 1 to 63 letters, digits, '-' and '_', separated by dots; 253 characters at most; the
/// last label must not be a number (RFC 1123, 2.1; RFC 2181, 11). Expects lower case.
[[nodiscard]] bool is_host_name(std::string_view name) noexcept;

/// Names for this machine or its local network, whatever a resolver returns: localhost (RFC 6761),
/// .local (RFC 6762), .home.arpa (RFC 8375), .onion (RFC 7686), .internal (reserved for private
/// use; includes the metadata service of a cloud host), and the usual names in /etc/hosts.
[[nodiscard]] bool is_local_name(std::string_view name) noexcept;

}  // namespace polymux::transport
