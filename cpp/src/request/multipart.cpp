#include "polymux/request/multipart.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "path_text.hpp"

namespace polymux::request {

namespace {

constexpr std::string_view digits = "0123456789abcdef";
constexpr std::size_t boundary_random_bytes = 24;
/// Turns the boundary that opens a part into the one that ends the body.
constexpr std::string_view closing = "--\r\n";

Result<std::string> make_boundary() {
    std::array<unsigned char, boundary_random_bytes> random{};
    std::size_t filled = 0;
    while (filled < random.size()) {
        const ssize_t count = ::getrandom(&random[filled], random.size() - filled, 0);
        if (count > 0) {
            filled += static_cast<std::size_t>(count);
        } else if (errno != EINTR) {
            return Error{.code = ErrorCode::internal,
                         .message = "the system returned no random bytes: " +
                                    std::generic_category().message(errno),
                         .os_errno = errno};
        }
    }
    std::string text = "polymux-";
    for (const unsigned byte : random) text += {digits[byte >> 4U], digits[byte & 0xFU]};
    return text;
}

void append_byte_escaped(std::string& text, char value) {
    const auto byte = static_cast<unsigned char>(value);
    if (byte < 0x20 || byte == 0x7F || value == '"') {
        text += {'%', "0123456789ABCDEF"[byte >> 4U], "0123456789ABCDEF"[byte & 0xFU]};
    } else {
        text += value;
    }
}

/// A name between quotes. Returns false for invalid UTF-8 if `repair` is not allowed.
bool append_name(std::string& header, std::string_view name, bool repair) {
    header += '"';
    while (!name.empty()) {
        const std::size_t length = utf8_sequence_bytes(name);
        if (length == 0 && !repair) return false;
        if (name == "\\") {
            header +=
                "%5C";  // Some servers take it and the quote for an escape, and drop the part.
        } else if (length == 1) {
            append_byte_escaped(header, name.front());
        } else {
            header += length == 0 ? std::string_view("\xEF\xBF\xBD") : name.substr(0, length);
        }
        name.remove_prefix(std::max<std::size_t>(length, 1));
    }
    header += '"';
    return true;
}

bool valid_utf8(std::string_view text) {
    while (!text.empty()) {
        const std::size_t length = utf8_sequence_bytes(text);
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

bool valid_content_type(std::string_view type) {
    const std::size_t slash = type.find('/');
    return slash != 0 && slash < type.size() - 1 && type.size() <= 255 &&
           std::ranges::all_of(type, [](char byte) { return byte >= ' ' && byte <= '~'; });
}

Error refused(std::string message) {
    return {.code = ErrorCode::invalid_argument, .message = std::move(message)};
}

Error bad_name(std::string_view name) {
    return refused("the field name " + quoted_path(name) + " is not valid UTF-8");
}

Error ended_early(const PartSource& source, std::uint64_t had_bytes) {
    return {.code = ErrorCode::input_changed,
            .message = quoted_path(source.name()) + " ended after " + std::to_string(had_bytes) +
                       " of " + std::to_string(source.size_bytes().value_or(0)) +
                       " bytes: it became shorter while it was sent. Send it again when it is no "
                       "longer being written, or send a copy",
            .input_name = source.name()};
}

}  // namespace

Result<MultipartBody> MultipartBody::create() {
    Result<std::string> boundary = make_boundary();
    if (!boundary) return std::move(boundary.error());
    return MultipartBody(*std::move(boundary));
}

MultipartBody::MultipartBody(std::string boundary)
    : boundary_(std::move(boundary)), content_type_("multipart/form-data; boundary=" + boundary_) {
    segments_.push_back({.head = "--" + boundary_ + std::string(closing), .source = {}});
}

Result<void> MultipartBody::add_text(std::string_view name, std::string_view value) {
    if (sent_bytes_ != 0) return refused("a part was added to a body that is already being sent");
    if (!valid_utf8(value)) {
        return refused("the value of the field " + quoted_path(name) + " is not valid UTF-8");
    }
    std::string quoted;
    if (!append_name(quoted, name, false)) return bad_name(name);
    std::string& head = segments_.back().head;
    head.resize(head.size() - closing.size());
    head += "\r\nContent-Disposition: form-data; name=";
    head += quoted;
    head += "\r\n\r\n";
    head += value;
    head += "\r\n--";
    head += boundary_;
    head += closing;
    return {};
}

Result<void> MultipartBody::add_file(std::string_view name, const FileLabel& label,
                                     std::unique_ptr<PartSource> source) {
    if (sent_bytes_ != 0) return refused("a part was added to a body that is already being sent");
    std::string quoted;
    if (!append_name(quoted, name, false)) return bad_name(name);
    const std::string_view file_name = label.file_name.empty() ? name : label.file_name;
    const std::string_view type =
        label.content_type.empty() ? content_type_of(file_name) : label.content_type;
    if (!valid_content_type(type)) {
        return refused("invalid content type of " + quoted_path(file_name) + " (got " +
                       quoted_path(type) + ", allowed printable ASCII such as audio/mpeg)");
    }
    std::string& head = segments_.back().head;
    head.resize(head.size() - closing.size());
    head += "\r\nContent-Disposition: form-data; name=";
    head += quoted;
    head += "; filename=";
    append_name(head, file_name, true);
    head += "\r\nContent-Type: ";
    head += type;
    head += "\r\n\r\n";
    segments_.back().source = std::move(source);
    segments_.push_back({.head = "\r\n--" + boundary_ + std::string(closing), .source = {}});
    return {};
}

std::optional<std::uint64_t> MultipartBody::length_bytes() const noexcept {
    std::uint64_t length = 0;
    for (const Segment& segment : segments_) {
        length += segment.head.size();
        if (segment.source == nullptr) continue;
        const std::optional<std::uint64_t> size = segment.source->size_bytes();
        if (!size) return {};
        length += *size;
    }
    return length;
}

std::size_t MultipartBody::current_file() const noexcept {
    return current_;  // Every segment except the last has a file.
}

Result<std::size_t> MultipartBody::read(std::span<std::byte> buffer) {
    if (failure_) return *failure_;
    Result<std::size_t> count = read_pieces(buffer);
    if (count) {
        sent_bytes_ += *count;
    } else {
        failure_ = count.error();
    }
    return count;
}

Result<std::size_t> MultipartBody::read_pieces(std::span<std::byte> buffer) {
    starved_ = false;
    std::size_t filled = 0;
    while (filled < buffer.size() && !finished()) {
        const std::span<std::byte> rest = buffer.subspan(filled);
        if (head_offset_ < segments_[current_].head.size()) {
            filled += read_head(rest);
            continue;
        }
        const std::size_t before = current_;
        const Result<std::size_t> count = read_source(rest);
        if (!count) return count.error();
        filled += *count;
        // A source that returned less may have more only later, so send the available bytes first.
        if (current_ == before) break;
    }
    return filled;
}

std::size_t MultipartBody::read_head(std::span<std::byte> buffer) noexcept {
    const Segment& segment = segments_[current_];
    const auto head = std::as_bytes(std::span(segment.head)).subspan(head_offset_);
    const auto taken = head.first(std::min(head.size(), buffer.size()));
    std::ranges::copy(taken, buffer.begin());
    head_offset_ += taken.size();
    if (segment.source == nullptr && taken.size() == head.size()) next_segment();
    return taken.size();
}

Result<std::size_t> MultipartBody::read_source(std::span<std::byte> buffer) {
    PartSource& source = *segments_[current_].source;
    const std::optional<std::uint64_t> size = source.size_bytes();
    std::size_t count = 0;
    bool ended = size && source_bytes_ == *size;
    if (!ended) {
        const std::uint64_t max_bytes = size ? *size - source_bytes_ : buffer.size();
        const Result<std::size_t> read = source.read(buffer.first(
            static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), max_bytes))));
        if (!read) return read.error();
        count = *read;
        source_bytes_ += count;
        if (count == 0 && source.starved()) {
            starved_ = true;
            return count;
        }
        ended = size ? source_bytes_ == *size : count == 0;
        if (count == 0 && !ended) return ended_early(source, source_bytes_);
    }
    // Check before sending the body's end, so a server never accepts an incomplete file as
    // complete.
    if (ended && size) {
        if (const Result<void> same = source.check_unchanged(); !same) return same.error();
    }
    if (ended) next_segment();
    return count;
}

void MultipartBody::next_segment() noexcept {
    current_ += 1;
    head_offset_ = 0;
    source_bytes_ = 0;
}

bool MultipartBody::can_rewind() const noexcept {
    return std::ranges::all_of(segments_, [](const Segment& segment) {
        return segment.source == nullptr || segment.source->can_rewind();
    });
}

Result<void> MultipartBody::rewind() {
    for (const Segment& segment : segments_) {
        if (segment.source == nullptr) continue;
        if (!segment.source->can_rewind()) {
            return refused(
                quoted_path(segment.source->name()) +
                " cannot be sent again, because it can be read only once. Pass a path, bytes or a "
                "seekable file instead");
        }
        if (Result<void> rewound = segment.source->rewind(); !rewound) return rewound;
    }
    current_ = 0;
    head_offset_ = 0;
    source_bytes_ = 0;
    sent_bytes_ = 0;
    starved_ = false;
    failure_.reset();
    return {};
}

}  // namespace polymux::request
