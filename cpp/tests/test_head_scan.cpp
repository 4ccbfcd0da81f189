#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "polymux/media/probe.hpp"
#include "polymux/media/sink.hpp"
#include "support.hpp"

using namespace polymux;
using namespace polymux::media;
using polymux::testing::as_bytes;
using polymux::testing::make_media;
using polymux::testing::read_file;
using polymux::testing::TemporaryFolder;

namespace {

/// Memory that is read like a pipe, in small pieces.
class PipeSource final : public ByteSource {
public:
    explicit PipeSource(std::string_view content) : inner_(memory_source(as_bytes(content), "")) {}
    Result<std::size_t> read(std::span<std::byte> buffer) override {
        constexpr std::size_t piece_bytes = 1000;
        return inner_->read(buffer.first(std::min(buffer.size(), piece_bytes)));
    }
    Result<void> seek(std::uint64_t /*offset_bytes*/) override {
        return Error{.code = ErrorCode::internal, .message = "a pipe cannot seek"};
    }
    bool seekable() const noexcept override { return false; }
    std::optional<std::uint64_t> size_bytes() const noexcept override { return {}; }
    const std::string& name() const noexcept override { return inner_->name(); }

private:
    std::unique_ptr<ByteSource> inner_;
};

std::string size_field(std::size_t size) {
    std::string text;
    for (int shift = 21; shift >= 0; shift -= 7) text += static_cast<char>(size >> shift & 0x7FU);
    return text;
}

/// An ID3v2.4 tag with `count` frames whose descriptions have `length` characters.
std::string tag(int count, std::size_t length) {
    std::string frames;
    for (int number = 0; number < count; ++number) {
        std::string name = std::to_string(number);
        name.insert(0, length - std::min(length, name.size()), 'k');
        const std::string content = '\3' + name + '\0' + "value";
        frames += "TXXX" + size_field(content.size()) + std::string(2, '\0') + content;
    }
    return std::string("ID3\4\0\0", 6) + size_field(frames.size()) + frames;
}

}  // namespace

TEST_SUITE("head scan") {
    TEST_CASE("many tags are refused, from files and from pipes") {
        const TemporaryFolder folder;
        const std::string path = folder.file("a.mp3");
        make_media(path, {"-f", "lavfi", "-i", "sine=duration=1", "-id3v2_version", "0"});
        const std::string sound = read_file(path);
        for (const auto& [head, works] : {std::pair{tag(900, 10), true},
                                          {tag(1100, 10), false},
                                          {tag(500, 900), false},
                                          {tag(600, 10) + tag(600, 10), false}}) {
            const std::string content = head + sound;
            const auto source = memory_source(as_bytes(content), "a.mp3");
            PipeSource pipe(content);
            for (ByteSource* one : {source.get(), static_cast<ByteSource*>(&pipe)}) {
                const auto info = probe(*one);
                REQUIRE(info.has_value() == works);
                if (works) {
                    CHECK(info->tags.size() >= 900);
                } else {
                    CHECK(info.error().code == ErrorCode::limit_exceeded);
                }
            }
        }
    }

    TEST_CASE("a large picture before other tags is no obstacle, also in a pipe") {
        const TemporaryFolder folder;
        const std::string path = folder.file("a.mp3");
        make_media(path, {"-f", "lavfi", "-i", "sine=duration=1", "-metadata", "title=T"});
        const std::string picture =
            std::string("\0image/png\0\3\0", 13) + std::string(2'000'000, 'x');
        const std::string frames =
            "APIC" + size_field(picture.size()) + std::string(2, '\0') + picture;
        const std::string content =
            std::string("ID3\4\0\0", 6) + size_field(frames.size()) + frames + read_file(path);
        PipeSource pipe(content);
        const auto info = probe(pipe);
        REQUIRE(info);
        REQUIRE(info->cover);
        CHECK(info->cover->data.size() == 2'000'000);
    }

    TEST_CASE("an MP4 whose index comes last says so if the input is not seekable") {
        const TemporaryFolder folder;
        const std::string path = folder.file("a.mov");
        make_media(path, {"-f", "lavfi", "-i", "sine=duration=20", "-c:a", "pcm_s16le"});
        const std::string content = read_file(path);
        PipeSource pipe(content);
        const auto info = probe(pipe);
        REQUIRE_FALSE(info);
        CHECK(info.error().code == ErrorCode::undecodable);
        CHECK(info.error().message.find("seekable") != std::string::npos);
    }

    TEST_CASE("a source can be used again, or says that it was used") {
        const TemporaryFolder folder;
        const std::string path = folder.file("a.wav");
        make_media(path, {"-f", "lavfi", "-i", "sine=duration=1"});
        const std::string content = read_file(path);
        const auto source = memory_source(as_bytes(content), "a.wav");
        CHECK(probe(*source));
        CHECK(probe(*source));
        PipeSource pipe(content);
        CHECK(probe(pipe));
        std::array<std::byte, 4096> rest{};
        for (auto count = pipe.read(rest); *count > 0; count = pipe.read(rest)) {
        }
        const auto again = probe(pipe);
        REQUIRE_FALSE(again);
        CHECK(again.error().message.find("read before") != std::string::npos);
    }
}
