#include "polymux/request/json_text.hpp"

#include <algorithm>
#include <cstring>

#include "request/text_kernels.hpp"

namespace polymux::json {

void Buffer::grow(std::size_t more_bytes) {
    const std::size_t capacity = std::max({size_ + more_bytes, 2 * capacity_, std::size_t{256}});
    auto bytes = std::make_unique_for_overwrite<char[]>(capacity);
    if (size_ > 0) std::memcpy(bytes.get(), bytes_.get(), size_);
    bytes_ = std::move(bytes);
    capacity_ = capacity;
}

void Buffer::append(std::string_view text) {
    if (text.empty()) return;
    std::memcpy(reserve(text.size()), text.data(), text.size());
    size_ += text.size();
}

namespace {

constexpr std::size_t short_bytes = 16;

template <typename Word>
Word load(const char* from) {
    Word word;
    std::memcpy(&word, from, sizeof word);
    return word;
}

/// Repeats a byte eight times.
constexpr std::uint64_t all(std::uint64_t byte) {
    return byte * 0x0101010101010101U;
}

/// Whether any of eight bytes needs escaping.
bool has_escape(std::uint64_t bytes) {
    const auto has_zero = [](std::uint64_t word) { return (word - all(0x01)) & ~word; };
    const std::uint64_t control = (bytes - all(0x20)) & ~bytes;
    const std::uint64_t quote = has_zero(bytes ^ all('"'));
    const std::uint64_t backslash = has_zero(bytes ^ all('\\'));
    return ((control | quote | backslash) & all(0x80)) != 0;
}

/// Copies fewer than 16 bytes if none needs escaping: most strings of most requests.
bool put_short(char* out, const char* text, std::size_t count) {
    if (count >= sizeof(std::uint64_t)) {
        const auto first = load<std::uint64_t>(text);
        const auto last = load<std::uint64_t>(text + count - sizeof first);
        if (has_escape(first) || has_escape(last)) return false;
        std::memcpy(out, &first, sizeof first);
        std::memcpy(out + count - sizeof last, &last, sizeof last);
    } else if (count >= sizeof(std::uint32_t)) {
        const auto first = load<std::uint32_t>(text);
        const auto last = load<std::uint32_t>(text + count - sizeof first);
        if (has_escape(std::uint64_t{first} << 32U | last)) return false;
        std::memcpy(out, &first, sizeof first);
        std::memcpy(out + count - sizeof last, &last, sizeof last);
    } else {
        for (std::size_t index = 0; index < count; ++index) {
            const auto code = static_cast<unsigned char>(text[index]);
            if (code < 0x20 || code == '"' || code == '\\') return false;
            out[index] = text[index];
        }
    }
    return true;
}

const std::uint8_t* bytes_of(std::string_view text) {
    return reinterpret_cast<const std::uint8_t*>(text.data());
}

/// Puts quotes around a kernel's output. Removes all of it if the text is invalid.
template <typename Unit>
bool append_checked(Buffer& buffer, std::span<const Unit> text,
                    bool (*kernel)(Buffer&, const Unit*, std::size_t)) {
    const std::size_t before = buffer.size_bytes();
    buffer.append('"');
    if (!kernel(buffer, text.data(), text.size())) {
        buffer.truncate(before);
        return false;
    }
    buffer.append('"');
    return true;
}

}  // namespace

void append_utf8(Buffer& buffer, std::string_view text) {
    if (text.size() < short_bytes) {
        char* const out = buffer.reserve(2 + short_bytes);
        if (put_short(out + 1, text.data(), text.size())) {
            out[0] = '"';
            out[1 + text.size()] = '"';
            buffer.advance(2 + text.size());
            return;
        }
    }
    buffer.append('"');
    best_kernels().utf8(buffer, bytes_of(text), text.size());
    buffer.append('"');
}

void append_name(Buffer& buffer, char before, std::string_view name) {
    if (name.size() < short_bytes) {
        char* const out = buffer.reserve(4 + short_bytes);
        if (put_short(out + 2, name.data(), name.size())) {
            out[0] = before;
            out[1] = '"';
            out[2 + name.size()] = '"';
            out[3 + name.size()] = ':';
            buffer.advance(4 + name.size());
            return;
        }
    }
    buffer.append(before);
    append_utf8(buffer, name);
    buffer.append(':');
}

void append_latin1(Buffer& buffer, std::span<const std::uint8_t> text) {
    buffer.append('"');
    best_kernels().latin1(buffer, text.data(), text.size());
    buffer.append('"');
}

bool append_ucs2(Buffer& buffer, std::span<const std::uint16_t> text) {
    return append_checked(buffer, text, best_kernels().ucs2);
}

bool append_ucs4(Buffer& buffer, std::span<const std::uint32_t> text) {
    return append_checked(buffer, text, best_kernels().ucs4);
}

}  // namespace polymux::json
