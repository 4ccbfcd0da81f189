#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "polymux/video/reader.hpp"
#include "support.hpp"
#include "video_support.hpp"

using namespace polymux;
using namespace polymux::media;
using namespace polymux::video;
using polymux::testing::as_bytes;
using polymux::testing::make_media;
using polymux::testing::read_all;
using polymux::testing::read_file;
using polymux::testing::Reading;
using polymux::testing::TemporaryFolder;

namespace {

constexpr FrameOptions wanted{.width = 32, .height = 32, .fps = {10, 1}, .max_frames = 20};

Reading read_bytes(std::string_view content, const FrameOptions& options = wanted,
                   const CancelToken& token = {}) {
    const auto source = memory_source(as_bytes(content), "given bytes");
    return read_all(*source, options, token);
}

std::string medium(const std::string& name, const std::vector<std::string>& arguments) {
    const TemporaryFolder folder;
    make_media(folder.file(name), arguments);
    return read_file(folder.file(name));
}

std::string film(const std::string& name, const std::string& size,
                 const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"-f", "lavfi", "-i", "testsrc2=s=" + size + ":r=10:d=2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return medium(name, arguments);
}

/// Every position of the four letters.
std::vector<std::size_t> places(const std::string& content, std::string_view letters) {
    std::vector<std::size_t> found;
    for (std::size_t at = content.find(letters); at != std::string::npos;
         at = content.find(letters, at + 1)) {
        found.push_back(at);
    }
    return found;
}

bool says(const Error& error, std::string_view text) {
    return error.message.find(text) != std::string::npos;
}

}  // namespace

TEST_SUITE("video reader of hostile input") {
    TEST_CASE("input that is not a video is refused with the reason") {
        CHECK(read_bytes("").report.error().code == ErrorCode::undecodable);
        CHECK(read_bytes(std::string(5000, 'x')).report.error().code ==
              ErrorCode::unsupported_media);
        CHECK(read_bytes("#EXTM3U\n#EXT-X-VERSION:3\n#EXTINF:1,\nfile:///etc/passwd\n")
                  .report.error()
                  .code == ErrorCode::unsupported_media);
        CHECK(read_bytes("ffconcat version 1.0\nfile /etc/passwd\n").report.error().code ==
              ErrorCode::unsupported_media);
        const Reading sound =
            read_bytes(medium("a.m4a", {"-f", "lavfi", "-i", "sine=duration=1", "-c:a", "aac"}));
        REQUIRE_FALSE(sound.report);
        CHECK(sound.report.error().code == ErrorCode::unsupported_media);
        CHECK(says(sound.report.error(), "no video"));
        CHECK(sound.report.error().input_name == "given bytes");
        const Reading picture = read_bytes(
            medium("a.png", {"-f", "lavfi", "-i", "testsrc2=s=32x32", "-frames:v", "1"}));
        REQUIRE_FALSE(picture.report);
        // An FFmpeg without support for images treats it as a damaged video.
        CHECK((picture.report.error().code == ErrorCode::unsupported_media ||
               picture.report.error().code == ErrorCode::undecodable));
    }

    TEST_CASE("a codec that is not listed is not decoded") {
        const Reading reading = read_bytes(film("a.avi", "64x64", {"-c:v", "ffv1"}));
        REQUIRE_FALSE(reading.report);
        CHECK(reading.report.error().code == ErrorCode::unsupported_media);
        CHECK(says(reading.report.error(), "ffv1"));
    }

    TEST_CASE("a video truncated anywhere gives the remaining frames or a reason") {
        for (const std::string& content :
             {film("a.mp4", "64x64", {"-c:v", "libx264", "-movflags", "faststart"}),
              film("a.webm", "64x64", {"-c:v", "libvpx-vp9"}), film("a.ts", "64x64", {}),
              film("a.gif", "64x64", {}), film("a.avi", "64x64", {"-c:v", "mpeg4"})}) {
            for (int part = 0; part < 40; ++part) {
                const std::size_t kept = content.size() * static_cast<std::size_t>(part) / 40;
                const Reading reading = read_bytes(std::string_view(content).substr(0, kept));
                if (reading.report) {
                    CHECK(reading.report->frames >= 1);
                    CHECK(reading.report->frames <= 20);
                    CHECK(reading.frames.size() ==
                          static_cast<std::size_t>(reading.report->frames));
                } else {
                    CHECK_FALSE(reading.report.error().message.empty());
                }
            }
        }
    }

    TEST_CASE("damage in the middle leaves the decodable frames") {
        std::string content =
            film("a.mp4", "64x64", {"-c:v", "libx264", "-g", "5", "-movflags", "faststart"});
        const std::size_t begin = content.find("mdat") + 4;
        for (std::size_t at = begin + 500; at < content.size(); at += 97) {
            content[at] = static_cast<char>(content[at] ^ 0x55);
        }
        const Reading reading = read_bytes(content);
        if (reading.report)
            CHECK(reading.report->frames <= 20);
        else
            CHECK_FALSE(reading.report.error().message.empty());
    }

    TEST_CASE("a size over the limit is refused before decoding") {
        const std::string content = film("a.mp4", "320x200", {"-c:v", "libx264"});
        FrameOptions strict = wanted;
        strict.video_limits.frame_pixels = 320 * 200 - 1;
        const Reading refused = read_bytes(content, strict);
        REQUIRE_FALSE(refused.report);
        CHECK(refused.report.error().code == ErrorCode::limit_exceeded);
        CHECK(says(refused.report.error(), "320x200"));
        strict.video_limits.frame_pixels = 320 * 200;
        CHECK(read_bytes(content, strict).report);
    }

    TEST_CASE("a container with a wrong size does not decide the memory use") {
        std::string content = film("a.mp4", "320x200", {"-c:v", "mpeg4"});
        // The sample entry's width and height, and those in the track header.
        const std::size_t entry = places(content, "mp4v").back();
        content.replace(entry + 4 + 24, 4, std::string("\x00\x02\x00\x02", 4));
        FrameOptions strict = wanted;
        strict.video_limits.frame_pixels = 1000;
        const Reading reading = read_bytes(content, strict);
        REQUIRE_FALSE(reading.report);
        // The stream itself declares 320x200: it produces no frame.
        CHECK((reading.report.error().code == ErrorCode::limit_exceeded ||
               reading.report.error().code == ErrorCode::undecodable));
        CHECK(reading.frames.empty());
    }

    TEST_CASE("huge sizes of GIF and VP8 are refused") {
        std::string gif = film("a.gif", "64x64", {});
        gif.replace(6, 4, std::string("\xff\xff\xff\xff", 4));
        const Reading claimed = read_bytes(gif);
        REQUIRE_FALSE(claimed.report);
        CHECK(claimed.report.error().code == ErrorCode::limit_exceeded);
        CHECK(says(claimed.report.error(), "65535x65535"));
        std::string ivf = film("a.webm", "64x64", {"-c:v", "libvpx"});
        // The key frame's start code, then 14 bits each of width and height.
        const std::size_t key = ivf.find(std::string("\x9d\x01\x2a", 3));
        REQUIRE(key != std::string::npos);
        ivf.replace(key + 3, 4, std::string("\xff\x3f\xff\x3f", 4));
        const Reading inner = read_bytes(ivf);
        if (inner.report)
            CHECK(inner.report->input_width == 64);
        else
            CHECK_FALSE(inner.report.error().message.empty());
    }

    TEST_CASE("more frames than the limit within the requested time end the work") {
        FrameOptions strict = wanted;
        strict.max_frames = 2;
        strict.fps = {1, 1};
        strict.video_limits.decoded_frames = 5;
        const std::string content = film("a.mp4", "64x64", {"-c:v", "libx264"});
        const Reading refused = read_bytes(content, strict);
        REQUIRE_FALSE(refused.report);
        CHECK(refused.report.error().code == ErrorCode::limit_exceeded);
        CHECK(says(refused.report.error(), "decoded_frames=5"));
        strict.video_limits.decoded_frames = 20;
        CHECK(read_bytes(content, strict).report);
    }

    TEST_CASE("a video over the time limit ends there, unless it has enough frames before") {
        FrameOptions strict = wanted;
        strict.limits.duration_s = 1.0;
        const std::string content = film("a.mp4", "64x64", {"-c:v", "libx264"});
        const Reading refused = read_bytes(content, strict);
        REQUIRE_FALSE(refused.report);
        CHECK(refused.report.error().code == ErrorCode::limit_exceeded);
        strict.max_frames = 5;
        CHECK(read_bytes(content, strict).report);
    }

    TEST_CASE("a gap of years is one long frame, and not much work") {
        std::string content = film("a.mp4", "64x64", {"-c:v", "libx264", "-bf", "0"});
        // The first entry of the time table: one sample with an extreme duration.
        const std::size_t table = content.find("stts");
        REQUIRE(table != std::string::npos);
        content.replace(table + 8 + 4, 4, std::string("\x7f\xff\xff\x00", 4));
        const Reading reading = read_bytes(content);
        if (reading.report)
            CHECK(reading.report->frames <= 20);
        else
            CHECK_FALSE(reading.report.error().message.empty());
    }

    TEST_CASE("a video that changes its size continues at the requested size") {
        const TemporaryFolder folder;
        std::string content = film("a.ts", "64x64", {"-c:v", "mpeg2video"});
        content += film("b.ts", "128x96", {"-c:v", "mpeg2video"});
        FrameOptions longer = wanted;
        longer.max_frames = 60;
        const Reading reading = read_bytes(content, longer);
        REQUIRE_MESSAGE(reading.report, reading.report.error().message);
        CHECK(reading.report->frames > 20);
        for (const auto& frame : reading.frames) CHECK(frame.size() == 32 * 32 * 3);
    }

    TEST_CASE("a canceled reader ends") {
        const CancelToken token;
        token.cancel();
        const Reading reading =
            read_bytes(film("a.mp4", "64x64", {"-c:v", "libx264"}), wanted, token);
        REQUIRE_FALSE(reading.report);
        CHECK(reading.report.error().code == ErrorCode::cancelled);
    }

    TEST_CASE("cancellation between frames ends before the next packet is read") {
        const std::string content = film("a.mp4", "64x64", {"-c:v", "libx264", "-bf", "0"});
        const auto source = memory_source(as_bytes(content), "given bytes");
        const CancelToken token;
        int given = 0;
        const auto cancel = [&](std::span<const std::byte>) {
            ++given;
            token.cancel();
            return true;
        };
        const auto report = read_frames(*source, cancel, wanted, token);
        REQUIRE_FALSE(report);
        CHECK(report.error().code == ErrorCode::cancelled);
        CHECK(given == 1);
    }
}
