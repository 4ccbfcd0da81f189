// Rules of start lines and fields, beyond the grammar that llhttp checks.
#pragma once

#include <string_view>

#include "polymux/http1/parser.hpp"

namespace polymux::http1 {

/// Reads a request line. Positions count from `line`.
Refusal read_request_line(std::string_view line, detail::HeadFacts& facts) noexcept;

Refusal read_status_line(std::string_view line, detail::HeadFacts& facts) noexcept;

/// Divides a field line. Positions count from `line`.
Refusal read_field_line(std::string_view line, FieldPosition& position) noexcept;

/// Applies a field to what is known about the message. `value_begin` is its position in the head.
Refusal apply_field(const Field& field, std::size_t value_begin, MessageKind kind,
                    detail::HeadFacts& facts) noexcept;

/// host [":" port] of RFC 3986, without user information.
bool is_authority(std::string_view text) noexcept;

/// Content-Length or Transfer-Encoding.
bool is_framing(std::string_view name) noexcept;

/// A field that senders must not use as a trailer, because recipients use it before the body (RFC
/// 9110, section 6.5.1).
bool is_forbidden_trailer(std::string_view name) noexcept;

struct ChunkLine {
    std::uint64_t size_bytes = 0;
    std::size_t extension_bytes = 0;
};

/// Reads a chunk's size and extensions (RFC 9112, section 7.1).
Refusal read_chunk_line(std::string_view line, ChunkLine& chunk) noexcept;

}  // namespace polymux::http1
