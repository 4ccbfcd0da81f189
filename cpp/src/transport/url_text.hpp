// Checks the text of a URL before any parser reads it. Rejects everything that parsers read
// differently.
#pragma once

#include <cstddef>
#include <string_view>

#include "polymux/result.hpp"

namespace polymux::transport {

inline constexpr std::size_t max_url_bytes = 8192;

inline constexpr std::string_view refused_url_prefix = "the URL is refused: ";

/// A refusal with the common message. `why` continues the prefix.
[[nodiscard]] Error refused_url(std::string_view why);

/// Checks the bytes of a URL or of a relative reference: length, control characters and blanks,
/// backslashes, percent codes, UTF-8, invisible characters.
Result<void> check_url_bytes(std::string_view text);

/// "http://" or "https://" in any case, then a host without user name, zone or percent code.
Result<void> check_url_form(std::string_view text);

}  // namespace polymux::transport
