// Checks whether a response is the requested remainder of a body (RFC 9110, 14 and 15).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "polymux/transport/fetch.hpp"

namespace polymux::transport {

/// The byte range of a part: "bytes 5-9/10", or "bytes 5-9/*".
struct ContentRange {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::optional<std::uint64_t> whole{};  ///< Empty if unknown.
};

/// Returns nullopt for text that is not a possible byte range.
[[nodiscard]] std::optional<ContentRange> parse_content_range(std::string_view text);

/// A quoted entity tag of printable ASCII, at most 512 bytes, that guarantees identical bytes (not
/// a weak one). Longer tags, and tags with other bytes, do not count.
[[nodiscard]] bool is_strong_etag(std::string_view text) noexcept;

/// Whether a body is content-encoded, so ranges do not refer to its decoded bytes.
[[nodiscard]] bool is_encoded(const std::vector<std::pair<std::string, std::string>>& headers);

/// Number of bytes that a response with status 206 adds, if it is exactly the requested remainder
/// up to the end; otherwise nullopt.
[[nodiscard]] std::optional<std::uint64_t> matching_range_bytes(
    const std::vector<std::pair<std::string, std::string>>& headers, const FetchResume& resume);

}  // namespace polymux::transport
