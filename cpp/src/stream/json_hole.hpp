// Reads the parts of a JSON document that a template leaves open: bodies of strings, and numbers.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "polymux/request/json_text.hpp"

namespace polymux::stream {

/// The body of a JSON string, read from its start.
struct StringBody {
    const char* end = nullptr;  ///< The closing quote; null if the body is invalid.
    bool has_escapes = false;
};

/// Reads up to the closing quote and validates control bytes, escapes and UTF-8. Rejects in doubt.
/// A byte that cannot be part of a string must follow the text, such as the zeros after a block's
/// bytes.
StringBody read_string_body(const char* at) noexcept;

/// Resolves the escapes of a validated body.
void append_unescaped(json::Buffer& buffer, std::string_view body);

/// Repairs JSON texts that contain lone surrogates. Servers that use UTF-16 may split a character:
/// the first half of its surrogate pair ends one chunk, the second half begins a later one.
class SurrogateMender {
public:
    /// Rewrites the document in place, padded with spaces. A first half at the end of a text is
    /// kept for a second half at the start of a text of the next document. Any other lone surrogate
    /// becomes U+FFFD. Returns false, and leaves the document unchanged, if it had none.
    bool mend(char* json, std::size_t bytes) noexcept;
    /// After `mend`: whether the first half that was kept before was not continued.
    [[nodiscard]] bool lost_half() const noexcept { return pending_ != 0; }
    /// Drops the kept first half. Returns false if there is none.
    bool drop_half() noexcept { return std::exchange(high_, 0U) != 0; }

private:
    unsigned high_ = 0;     // The kept first half.
    unsigned pending_ = 0;  // That of the previous document.
};

/// The end of a JSON number that fits a 64-bit parser; null for any other text.
const char* read_number(const char* at) noexcept;

}  // namespace polymux::stream
