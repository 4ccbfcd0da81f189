// Reason phrases of status lines.
#pragma once

#include <string_view>

namespace polymux::server {

/// Empty for a status without a registered reason (RFC 9112, section 4).
[[nodiscard]] std::string_view reason_of(int status) noexcept;

}  // namespace polymux::server
