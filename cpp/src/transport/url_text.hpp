// What the text of a URL must be before any parser sees it. What parsers read differently is
// refused here, so that there is nothing left to disagree on.
#pragma once

#include <string_view>

#include "polymux/result.hpp"

namespace polymux::transport {

inline constexpr std::size_t max_url_bytes = 8192;

/// A refusal in the fixed words of all of them. `why` continues "the URL is refused: ".
[[nodiscard]] Error refused_url(std::string_view why);

/// The bytes of a URL or of a relative reference: length, control characters and blanks,
/// backslashes, percent codes, UTF-8, characters that do not show.
Result<void> check_url_bytes(std::string_view text);

/// "http://" or "https://" in any case, a host, no user name, no zone, no percent code in it.
Result<void> check_url_form(std::string_view text);

}  // namespace polymux::transport
