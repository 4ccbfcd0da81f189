// The parts of a JSON document that a template leaves open: bodies of strings, and numbers.
#pragma once

#include <cstddef>
#include <string_view>

#include "polymux/request/json_text.hpp"

namespace polymux::stream {

/// The body of a JSON string, found at its beginning.
struct StringBody {
    const char* end = nullptr;  ///< The closing quote; null where there is no valid body.
    bool has_escapes = false;
};

/// Reads up to the closing quote and validates on the way: control bytes, escapes, UTF-8. What it
/// cannot be sure of it refuses. A byte that is no part of a string must follow the text, such as
/// the zeros behind a block's bytes.
StringBody read_string_body(const char* at) noexcept;

/// Resolves the escapes of a body that was read.
void append_unescaped(json::Buffer& buffer, std::string_view body);

/// Makes texts of JSON readable that hold halves of surrogate pairs. Servers that think in UTF-16
/// cut a character in two: the first half ends one chunk, the second begins a later one.
class SurrogateMender {
public:
    /// Rewrites the document where it stands, filled up with spaces. A half at a text's end is kept
    /// for the half that begins a later text, and is lost where none comes; any other becomes
    /// U+FFFD. False where there was none: the document is as it was.
    bool mend(char* json, std::size_t bytes) noexcept;

private:
    unsigned high_ = 0;  // The first half that waits.
};

/// The end of a JSON number that a 64-bit parser reads without overflow; null for any other text.
const char* read_number(const char* at) noexcept;

}  // namespace polymux::stream
