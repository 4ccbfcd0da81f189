// Any text, chapters and image as an ID3v2 tag; the tag is then walked by its own sizes.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "check.hpp"
#include "polymux/media/mp3/id3.hpp"

using polymux::media::Chapter;
using polymux::media::Cover;
using polymux::media::Tags;
using polymux::media::mp3::Id3Content;
using polymux::media::mp3::Id3Options;

namespace {

constexpr std::size_t header_bytes = 10;

Tags some_tags(FuzzedDataProvider& provider) {
    static const std::vector<std::string> names = {
        "title", "artist", "album", "comment", "track",   "date",        "genre",
        "disc",  "lyrics", "TXXX",  "TIT2",    "encoder", "album_artist"};
    Tags tags;
    for (int left = provider.ConsumeIntegralInRange(0, 8); left > 0; --left) {
        const bool known = provider.ConsumeBool();
        std::string name =
            known ? names[provider.ConsumeIntegralInRange<std::size_t>(0, names.size() - 1)]
                  : provider.ConsumeRandomLengthString(40);
        tags.emplace_back(std::move(name), provider.ConsumeRandomLengthString(300));
    }
    return tags;
}

Id3Content some_content(FuzzedDataProvider& provider) {
    Id3Content content;
    content.tags = some_tags(provider);
    for (int left = provider.ConsumeIntegralInRange(0, 300); left > 0; left -= 17) {
        Chapter chapter;
        chapter.start_ms = provider.ConsumeIntegral<std::int64_t>();
        chapter.end_ms = provider.ConsumeIntegral<std::int64_t>();
        chapter.tags = some_tags(provider);
        content.chapters.push_back(std::move(chapter));
    }
    if (provider.ConsumeBool()) {
        Cover cover;
        cover.mime_type = provider.ConsumeRandomLengthString(40);
        cover.description = provider.ConsumeRandomLengthString(80);
        cover.picture_type = provider.ConsumeIntegral<int>();
        const std::string data = provider.ConsumeRandomLengthString(2'000);
        const auto bytes = std::as_bytes(std::span(data));
        cover.data.assign(bytes.begin(), bytes.end());
        content.cover = std::move(cover);
    }
    return content;
}

std::size_t number(std::span<const std::byte> bytes, int bits_per_byte) {
    std::size_t value = 0;
    for (const std::byte byte : bytes) {
        if (bits_per_byte == 7) POLYMUX_FUZZ_CHECK(std::to_integer<int>(byte) < 0x80);
        value = value << static_cast<unsigned>(bits_per_byte) | std::to_integer<std::size_t>(byte);
    }
    return value;
}

bool is_frame_id(std::span<const std::byte> bytes) {
    return std::ranges::all_of(bytes, [](std::byte byte) {
        const char character = static_cast<char>(byte);
        return (character >= 'A' && character <= 'Z') || (character >= '0' && character <= '9');
    });
}

// Frames fill `body` to its last byte, except for zeros at the end.
void check_frames(std::span<const std::byte> body, const Id3Options& options) {
    while (!body.empty()) {
        if (body.front() == std::byte{0}) {
            POLYMUX_FUZZ_CHECK(
                std::ranges::all_of(body, [](std::byte b) { return b == std::byte{0}; }));
            return;
        }
        POLYMUX_FUZZ_CHECK(body.size() >= header_bytes);
        POLYMUX_FUZZ_CHECK(is_frame_id(body.first(4)));
        // ffmpeg writes the sizes of chapter frames with eight bits per byte in version 4 too.
        const bool as_version_3 =
            options.version == 3 || (options.as_ffmpeg && body.front() == std::byte{'C'} &&
                                     (body[1] == std::byte{'H'} || body[1] == std::byte{'T'}));
        const std::size_t size = number(body.subspan(4, 4), as_version_3 ? 8 : 7);
        POLYMUX_FUZZ_CHECK(size > 0 && size <= body.size() - header_bytes);
        body = body.subspan(header_bytes + size);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    FuzzedDataProvider provider(data, size);
    Id3Options options;
    options.version = provider.ConsumeBool() ? 3 : 4;
    options.as_ffmpeg = provider.ConsumeBool();
    const Id3Content content = some_content(provider);
    std::vector<std::string> dropped;
    const std::vector<std::byte> tag = polymux::media::mp3::write_id3v2(content, options, &dropped);
    POLYMUX_FUZZ_CHECK(polymux::media::mp3::write_id3v2(content, options) == tag);
    if (tag.empty()) return 0;
    const std::span<const std::byte> bytes(tag);
    POLYMUX_FUZZ_CHECK(bytes.size() >= header_bytes && std::memcmp(bytes.data(), "ID3", 3) == 0);
    POLYMUX_FUZZ_CHECK(std::to_integer<int>(bytes[3]) == options.version);
    POLYMUX_FUZZ_CHECK(number(bytes.subspan(6, 4), 7) == bytes.size() - header_bytes);
    check_frames(bytes.subspan(header_bytes), options);
    return 0;
}
