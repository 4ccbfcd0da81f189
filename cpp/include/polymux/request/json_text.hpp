// JSON text, written piece by piece into a reusable buffer.
//
//     json::Buffer buffer;
//     buffer.append("{\"prompt\":");
//     json::append_utf8(buffer, prompt);
//     buffer.append("}");
//     send(buffer.view());
//     buffer.clear();  // keeps the memory
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace polymux::json {

/// A growing byte buffer. Growth leaves the new bytes uninitialized, and `clear` keeps the memory.
class Buffer {
public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        Buffer taken;
        taken.swap(other);
        swap(taken);
        return *this;
    }

    std::string_view view() const noexcept { return {bytes_.get(), size_}; }
    std::size_t size_bytes() const noexcept { return size_; }
    std::size_t capacity_bytes() const noexcept { return capacity_; }
    void clear() noexcept { size_ = 0; }

    /// Reserves room for that many more bytes. Write there, then call `advance`. Throws
    /// std::bad_alloc.
    char* reserve(std::size_t more_bytes) {
        if (capacity_ - size_ < more_bytes) grow(more_bytes);
        return bytes_.get() + size_;
    }
    void advance(std::size_t bytes) noexcept { size_ += bytes; }
    /// Removes everything after that size.
    void truncate(std::size_t size_bytes) noexcept { size_ = size_bytes; }
    void append(char byte) {
        *reserve(1) = byte;
        ++size_;
    }
    void append(std::string_view text);

    void swap(Buffer& other) noexcept {
        bytes_.swap(other.bytes_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }

private:
    void grow(std::size_t more_bytes);

    std::unique_ptr<char[]> bytes_;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

/// Appends a quoted string. `text` must be valid UTF-8.
void append_utf8(Buffer& buffer, std::string_view text);

/// The same for text of one, two or four bytes per character. Returns false and writes nothing if a
/// surrogate is unpaired or a number is not a character.
void append_latin1(Buffer& buffer, std::span<const std::uint8_t> text);
[[nodiscard]] bool append_ucs2(Buffer& buffer, std::span<const std::uint16_t> text);
[[nodiscard]] bool append_ucs4(Buffer& buffer, std::span<const std::uint32_t> text);

/// Appends the start of a member: `before` (a brace or a comma), the name in UTF-8, a colon.
void append_name(Buffer& buffer, char before, std::string_view name);

void append_integer(Buffer& buffer, std::int64_t value);

/// Appends the shortest text that reads back as the same number, formatted as in Python (1.0,
/// 1e+16). Returns false and writes nothing for NaN and infinities, which JSON does not support.
[[nodiscard]] bool append_number(Buffer& buffer, double value);

}  // namespace polymux::json
