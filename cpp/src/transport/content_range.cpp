#include "transport/content_range.hpp"

#include <algorithm>
#include <charconv>

#include "ascii.hpp"
#include "transport/fetch_hop.hpp"

namespace polymux::transport {
namespace {

constexpr std::size_t max_etag_bytes = 512;
constexpr std::string_view unit = "bytes ";

/// The whole `text` as a number: digits only, without a sign or a blank.
std::optional<std::uint64_t> number(std::string_view text) noexcept {
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, outcome] = std::from_chars(text.data(), end, value);
    if (outcome != std::errc() || stopped != end) return std::nullopt;
    return value;
}

}  // namespace

std::optional<ContentRange> parse_content_range(std::string_view text) {
    if (lower_case(text.substr(0, unit.size())) != unit) return std::nullopt;
    text.remove_prefix(unit.size());
    const std::size_t dash = text.find('-');
    const std::size_t slash = text.find('/');
    if (dash == std::string_view::npos || slash == std::string_view::npos || dash > slash) {
        return std::nullopt;
    }
    const auto first = number(text.substr(0, dash));
    const auto last = number(text.substr(dash + 1, slash - dash - 1));
    if (!first || !last || *first > *last) return std::nullopt;
    ContentRange range{.first = *first, .last = *last};
    if (text.substr(slash + 1) == "*") return range;
    range.whole = number(text.substr(slash + 1));
    if (!range.whole || *range.whole <= *last) return std::nullopt;
    return range;
}

bool is_strong_etag(std::string_view text) noexcept {
    if (text.size() < 2 || text.size() > max_etag_bytes) return false;
    if (text.front() != '"' || text.back() != '"') return false;
    return std::ranges::all_of(text.substr(1, text.size() - 2),
                               [](char one) { return one > ' ' && one < 0x7f && one != '"'; });
}

bool is_encoded(const std::vector<std::pair<std::string, std::string>>& headers) {
    return std::ranges::any_of(headers, [](const auto& header) {
        return lower_case(header.first) == "content-encoding" && !header.second.empty() &&
               lower_case(header.second) != "identity";
    });
}

std::optional<std::uint64_t> matching_range_bytes(
    const std::vector<std::pair<std::string, std::string>>& headers, const FetchResume& resume) {
    const auto ranges = std::ranges::count_if(
        headers, [](const auto& header) { return lower_case(header.first) == "content-range"; });
    if (ranges != 1 || is_encoded(headers)) return std::nullopt;
    const auto range = parse_content_range(*find_header(headers, "content-range"));
    if (!range || range->first != resume.offset_bytes) return std::nullopt;
    // The request asked for everything up to the end; a range that stops earlier is incomplete.
    if (range->whole && *range->whole - 1 != range->last) return std::nullopt;
    if (resume.total_bytes && *resume.total_bytes != range->last + 1) return std::nullopt;
    // A server without support for If-Range sends a range of whatever it has now.
    const std::string* const etag = find_header(headers, "etag");
    if (is_strong_etag(resume.etag) && etag != nullptr && *etag != resume.etag) return std::nullopt;
    return range->last - range->first + 1;
}

}  // namespace polymux::transport
