// Converts characters to JSON text, with a variant for each kind of processor.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "polymux/request/json_text.hpp"

namespace polymux::json {

/// The end of a buffer during writing. Written bytes count after `finish`.
class Out {
public:
    Out(Buffer& buffer, std::size_t bytes) : buffer_(buffer) { take(bytes); }
    Out(const Out&) = delete;
    Out& operator=(const Out&) = delete;

    char* at = nullptr;  ///< Position of the next byte.

    /// Ensures room for that many more bytes. If it has to grow, reserves `hoped_bytes` too.
    void more(std::size_t bytes, std::size_t hoped_bytes) {
        if (static_cast<std::size_t>(end_ - at) < bytes) [[unlikely]] {
            finish();
            take(bytes + hoped_bytes);
        }
    }
    void finish() {
        buffer_.advance(static_cast<std::size_t>(at - begin_));
        begin_ = at;
    }

private:
    void take(std::size_t bytes) {
        begin_ = at = buffer_.reserve(bytes);
        end_ = begin_ + (buffer_.capacity_bytes() - buffer_.size_bytes());
    }

    Buffer& buffer_;
    char* begin_ = nullptr;
    const char* end_ = nullptr;
};

/// The text of a byte: up to seven bytes, and their count in the topmost byte.
using Spelling = std::uint64_t;
constexpr unsigned spelling_length_shift = 56;
constexpr std::size_t max_escape_bytes = 6;  // \u001f

extern const Spelling* const utf8_spellings;    ///< For each UTF-8 byte.
extern const Spelling* const latin1_spellings;  ///< For each character of Latin-1.

// The functions below accept and return the position of the next byte instead of changing an `Out`.
// An object passed by address is read again after every written byte.

/// Writes eight bytes, of which only the spelling's length counts.
inline char* put_spelling(char* at, Spelling spelling) {
    if constexpr (std::endian::native == std::endian::little) {
        std::memcpy(at, &spelling, sizeof spelling);
    } else {
        for (unsigned index = 0; index < sizeof spelling; ++index) {
            at[index] = static_cast<char>(spelling >> (8 * index) & 0xFFU);
        }
    }
    return at + (spelling >> spelling_length_shift);
}

/// Writes one character, in at most eight bytes. Returns null for an invalid character.
char* put_character(char* at, std::uint32_t code);

/// Append the characters of a string, without quotes. For an invalid character, `ucs2` and `ucs4`
/// return false, and may have written some of the text.
struct TextKernels {
    void (*utf8)(Buffer& buffer, const std::uint8_t* text, std::size_t count);
    void (*latin1)(Buffer& buffer, const std::uint8_t* text, std::size_t count);
    bool (*ucs2)(Buffer& buffer, const std::uint16_t* text, std::size_t count);
    bool (*ucs4)(Buffer& buffer, const std::uint32_t* text, std::size_t count);
};

enum class Processor : std::uint8_t { any, sse4, avx2 };

/// The kernels for that processor, or null if the current one differs.
const TextKernels* kernels_for(Processor processor);

/// The fastest kernels that this processor supports.
const TextKernels& best_kernels();

}  // namespace polymux::json
