// Parts of an ID3v2 tag, shared by the standard writer and the ffmpeg-compatible one. Not
// installed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "polymux/media/mp3/id3.hpp"

namespace polymux::media::mp3::id3 {

using Bytes = std::vector<std::byte>;

template <std::size_t count>
[[nodiscard]] bool contains(const std::array<std::string_view, count>& ids, std::string_view id) {
    return std::ranges::find(ids, id) != ids.end();
}

/// The values of the encoding byte that this project writes.
enum class Encoding : std::uint8_t { latin1 = 0, utf16 = 1, utf8 = 3 };

/// Whether a frame's size leaves the high bit of each byte free: yes in ID3v2.4, no in ID3v2.3.
enum class SizeCoding : std::uint8_t { plain, synchsafe };

/// Decodes UTF-8 to code points. Invalid UTF-8 becomes U+FFFD, CR and CRLF become LF, tabs become
/// spaces, and other control characters are removed.
[[nodiscard]] std::u32string decode_text(std::string_view utf8);

/// For fields that allow one line only: line breaks become spaces.
[[nodiscard]] std::u32string single_line(std::u32string text);

/// UTF-8 in ID3v2.4. In ID3v2.3, ISO-8859-1 if all texts fit, otherwise UTF-16.
[[nodiscard]] Encoding choose_encoding(int version, std::span<const std::u32string_view> texts);

void append_number(Bytes& bytes, std::uint32_t value, SizeCoding coding = SizeCoding::plain);
void append_raw(Bytes& bytes, std::string_view text);
/// UTF-16 is little endian, after its byte order mark.
void append_text(Bytes& bytes, std::u32string_view text, Encoding encoding);
void append_terminator(Bytes& bytes, Encoding encoding);

/// Bytes of a tag without its header: 28 bits.
inline constexpr std::size_t max_tag_bytes = (std::size_t{1} << 28) - 1;
/// Zeros after the last frame; some players show no cover without them.
inline constexpr std::size_t padding_bytes = 10;

/// Consecutive frames, as a tag's body or inside a CHAP frame.
class FrameList {
public:
    FrameList(int version, std::size_t limit_bytes)
        : version_(version), limit_bytes_(limit_bytes) {}

    /// Adds a frame with `head` and `tail` as its body. Returns false if it would exceed the limit.
    bool add(std::string_view id, std::span<const std::byte> head,
             std::span<const std::byte> tail = {}, std::optional<SizeCoding> coding = std::nullopt);
    /// Adds complete frames.
    bool add_frames(std::span<const std::byte> frames);

    [[nodiscard]] std::size_t free_bytes() const noexcept { return limit_bytes_ - bytes_.size(); }
    [[nodiscard]] const Bytes& bytes() const noexcept { return bytes_; }

    /// The complete tag: header, frames, padding.
    [[nodiscard]] Bytes as_tag() const;

private:
    int version_;
    std::size_t limit_bytes_;
    Bytes bytes_;
};

/// One frame that holds text, before it is encoded.
struct TextFrame {
    std::string key;             ///< First tag that produced it, for messages.
    std::string id;              ///< "TIT2", "TXXX", "COMM", "USLT".
    std::u32string description;  ///< TXXX, COMM and USLT only.
    std::string language;        ///< COMM and USLT only, three letters.
    std::vector<std::u32string> values;
};

/// Maps tags to frames. Collects values that belong to the same frame.
[[nodiscard]] std::vector<TextFrame> text_frames(const Tags& tags, int version);

/// MIME type for APIC: "image/jpeg" for "image/jpg", "image/" if it is not a MIME type.
[[nodiscard]] std::string picture_mime_type(const Cover& cover);

Bytes write_as_ffmpeg(const Id3Content& content, int version, std::vector<std::string>* dropped);

}  // namespace polymux::media::mp3::id3
