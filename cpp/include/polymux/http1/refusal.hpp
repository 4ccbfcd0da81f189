// Reasons for which the HTTP/1.1 parser rejects a message.
#pragma once

#include <cstdint>
#include <string_view>

namespace polymux::http1 {

/// The connection must be closed after each of these: the position of the next message is unknown.
enum class Refusal : std::uint8_t {
    none,
    // Start line.
    invalid_start_line,
    start_line_too_long,
    invalid_method,
    unknown_method,  ///< A valid token that is not a method of RFC 9110 or PATCH; also CONNECT.
    invalid_target,
    unsupported_version,
    unexpected_upgrade,  ///< A response with status 101.
    // Lines.
    bare_cr,
    bare_lf,
    control_character,
    // Fields.
    folded_field,
    invalid_field,  ///< No colon.
    invalid_field_name,
    field_too_long,
    too_many_fields,
    fields_too_large,
    missing_host,
    several_hosts,
    invalid_host,
    unsupported_expectation,
    // Framing.
    invalid_content_length,
    several_content_lengths,
    length_and_transfer_encoding,
    invalid_transfer_encoding,
    unsupported_transfer_encoding,  ///< Other codings before a final `chunked`.
    body_too_large,
    invalid_chunk_size,
    invalid_chunk_extension,
    chunk_extensions_too_large,
    invalid_chunk_end,
    invalid_trailer,
    too_many_trailers,
    trailers_too_large,
    incomplete,  ///< The peer closed the connection inside a message.
    ambiguous,   ///< llhttp and polymux read the message differently.
};

/// The name of the enumerator: "bare_lf". These names do not change between versions.
[[nodiscard]] std::string_view to_string(Refusal refusal) noexcept;

/// The status with which a server answers: 400, 413, 414, 417, 431, 501 or 505; 0 for `none`.
[[nodiscard]] int status_of(Refusal refusal) noexcept;

}  // namespace polymux::http1
