#include "transport/fetch_head.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "ascii.hpp"
#include "transport/content_range.hpp"
#include "transport/fetch_hop.hpp"

namespace polymux::transport {
namespace {

Error head_too_large(const std::string& what) {
    return {.code = ErrorCode::answer_too_large, .message = "the response is too large: " + what};
}

Error wrong_length(const std::string& what) {
    return {.code = ErrorCode::connection_lost,
            .message = "the response's Content-Length " + what,
            .stage = "receive"};
}

std::string_view trimmed(std::string_view text) noexcept {
    constexpr std::string_view blanks = " \t\r\n";
    const std::size_t first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// The code of "HTTP/1.1 200 OK"; 0 if missing.
int status_of(std::string_view line) noexcept {
    const std::size_t blank = line.find(' ');
    int status = 0;
    if (blank != std::string_view::npos) {
        const std::string_view code = line.substr(blank + 1, 3);
        std::from_chars(code.data(), code.data() + code.size(), status);
    }
    return status;
}

}  // namespace

const std::string* find_header(const std::vector<std::pair<std::string, std::string>>& headers,
                               std::string_view name) {
    const auto found = std::ranges::find_if(
        headers, [&](const auto& header) { return lower_case(header.first) == name; });
    return found == headers.end() ? nullptr : &found->second;
}

Result<bool> FetchHead::take_line(std::string_view line) {
    bytes_ += line.size();
    const bool is_end = trimmed(line).empty();
    if (!is_end) ++lines_;
    if (bytes_ > limits_.header_bytes) {
        return head_too_large("its header fields have more than " +
                              std::to_string(limits_.header_bytes) + " bytes");
    }
    if (lines_ > std::uint64_t{limits_.header_count} + 1) {
        return head_too_large("it has more than " + std::to_string(limits_.header_count) +
                              " header fields");
    }
    if (complete_) return false;
    if (line.starts_with("HTTP/")) {
        headers.clear();
        status_ = status_of(line);
    } else if (!is_end) {
        add(line);
    } else if (status_ >= 200) {
        complete_ = true;
        if (auto finished = finish(); !finished) return finished.error();
        return true;
    }
    return false;
}

void FetchHead::add(std::string_view line) {
    if ((line.front() == ' ' || line.front() == '\t') && !headers.empty()) {
        headers.back().second.append(" ").append(trimmed(line));  // Folded (RFC 9112, 5.2).
        return;
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    headers.emplace_back(trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
}

bool FetchHead::is_redirect() const {
    const bool redirect =
        status_ == 301 || status_ == 302 || status_ == 303 || status_ == 307 || status_ == 308;
    return redirect && find_header(headers, "location") != nullptr;
}

Result<void> FetchHead::finish() {
    if (is_redirect()) return {};
    if (auto read = read_length(); !read) return read;
    if (resume_.offset_bytes > 0) check_range();
    return range_refused_ ? Result<void>() : check_length();
}

void FetchHead::check_range() {
    constexpr int partial_content = 206;
    // Some servers without range support return these instead of the whole body.
    constexpr std::array refusals_of_ranges{400, 412, 416, 501};
    range_refused_ = std::ranges::find(refusals_of_ranges, status_) != refusals_of_ranges.end();
    if (status_ != partial_content) return;
    const auto bytes = matching_range_bytes(headers, resume_);
    range_refused_ = !bytes || (length_ && *length_ != *bytes);
    if (range_refused_) return;
    offset_ = resume_.offset_bytes;
    length_ = bytes;
}

FetchStart FetchHead::start() const {
    FetchStart start{.status = status_, .offset = offset_, .is_encoded = is_encoded(headers)};
    if (length_ && !start.is_encoded) start.total_bytes = offset_ + *length_;
    const std::string* const etag = find_header(headers, "etag");
    if (etag != nullptr && is_strong_etag(*etag)) start.etag = *etag;
    return start;
}

Result<void> FetchHead::read_length() {
    if (find_header(headers, "transfer-encoding") != nullptr) return {};
    for (const auto& [name, text] : headers) {
        if (lower_case(name) != "content-length") continue;
        std::uint64_t length = 0;
        const char* const end = text.data() + text.size();
        const auto [stopped, outcome] = std::from_chars(text.data(), end, length);
        if (outcome == std::errc::result_out_of_range) {
            length = std::numeric_limits<std::uint64_t>::max();
        } else if (outcome != std::errc() || stopped != end) {
            // libcurl would accept the number before the trailing text.
            return wrong_length("is not a number");
        }
        // libcurl would use the last value (RFC 9112, 6.3).
        if (length_ && *length_ != length) return wrong_length("has several different values");
        length_ = length;
    }
    return {};
}

Result<void> FetchHead::check_length() const {
    const std::uint64_t max_bytes = limits_.body_bytes;
    if (!length_ || (offset_ <= max_bytes && *length_ <= max_bytes - offset_)) return {};
    const std::string before =
        offset_ > 0 ? " after the " + std::to_string(offset_) + " already downloaded" : "";
    return head_too_large("it declares " + std::to_string(*length_) + " bytes" + before +
                          " (allowed " + std::to_string(max_bytes) + ")");
}

}  // namespace polymux::transport
