// Whether an answer is the rest of a body that the caller has the beginning of (RFC 9110, 14 and
// 15).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "polymux/transport/fetch.hpp"

namespace polymux::transport {

/// Which bytes of the whole a part is: "bytes 5-9/10", or "bytes 5-9/*".
struct ContentRange {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::optional<std::uint64_t> whole{};  ///< Nobody knows it where it is empty.
};

/// Nullopt for all that is no range of bytes, or none that can be.
[[nodiscard]] std::optional<ContentRange> parse_content_range(std::string_view text);

/// A quoted entity tag of printable ASCII, at most 512 bytes, that promises the same bytes: a weak
/// one does not. Longer ones, and those with other bytes, count as none.
[[nodiscard]] bool is_strong_etag(std::string_view text) noexcept;

/// Whether a body is encoded, so that it is not the bytes that a range counts.
[[nodiscard]] bool is_encoded(const std::vector<std::pair<std::string, std::string>>& headers);

/// How many bytes an answer with status 206 adds, where it is exactly the rest that was asked for,
/// to the end of the whole; else nullopt.
[[nodiscard]] std::optional<std::uint64_t> matching_range_bytes(
    const std::vector<std::pair<std::string, std::string>>& headers, const FetchResume& resume);

}  // namespace polymux::transport
