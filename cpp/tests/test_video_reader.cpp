#include "polymux/video/reader.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "support.hpp"
#include "video/fitting.hpp"
#include "video/orientation.hpp"
#include "video_support.hpp"

using namespace polymux;
using namespace polymux::media;
using namespace polymux::video;
using polymux::testing::drawn;
using polymux::testing::Frame;
using polymux::testing::make_media;
using polymux::testing::psnr;
using polymux::testing::read_file;
using polymux::testing::read_path;
using polymux::testing::run_program;
using polymux::testing::TemporaryFolder;
using polymux::testing::write_drawn;
using polymux::testing::write_file;

namespace {

using Strings = std::vector<std::string>;

std::array<int, 3> pixel(const Frame& frame, int width, int x, int y) {
    const auto at = static_cast<std::size_t>((y * width + x) * 3);
    return {std::to_integer<int>(frame.at(at)), std::to_integer<int>(frame.at(at + 1)),
            std::to_integer<int>(frame.at(at + 2))};
}

bool is_like(const std::array<int, 3>& found, const std::array<int, 3>& wanted, int most = 24) {
    for (std::size_t part = 0; part < 3; ++part) {
        if (std::abs(found.at(part) - wanted.at(part)) > most) return false;
    }
    return true;
}

constexpr std::array<int, 3> red{255, 0, 0};
constexpr std::array<int, 3> green{0, 128, 0};
constexpr std::array<int, 3> blue{0, 0, 255};
constexpr std::array<int, 3> white{255, 255, 255};

/// Red and green above, blue and white below: four corners that show how an image is rotated.
Strings corners(int width, int height) {
    const std::string half =
        "s=" + std::to_string(width / 2) + "x" + std::to_string(height / 2) + ":r=10:d=0.5";
    return {"-f",
            "lavfi",
            "-i",
            "color=red:" + half,
            "-f",
            "lavfi",
            "-i",
            "color=green:" + half,
            "-f",
            "lavfi",
            "-i",
            "color=blue:" + half,
            "-f",
            "lavfi",
            "-i",
            "color=white:" + half,
            "-filter_complex",
            "[0][1]hstack[a];[2][3]hstack[b];[a][b]vstack"};
}

Strings operator+(Strings left, const Strings& right) {
    left.insert(left.end(), right.begin(), right.end());
    return left;
}

std::string numbers_of(const std::array<std::int32_t, 9>& matrix) {
    return {reinterpret_cast<const char*>(matrix.data()), sizeof matrix};
}

/// An MP4 whose track header states how to display its video.
std::string with_matrix(std::string mp4, const std::array<std::int32_t, 4>& numbers) {
    const std::size_t matrix = mp4.find("tkhd") + 44;
    constexpr std::array<std::size_t, 4> places{0, 4, 12, 16};
    for (std::size_t number = 0; number < numbers.size(); ++number) {
        const auto value = static_cast<std::uint32_t>(numbers.at(number));
        for (std::size_t byte = 0; byte < 4; ++byte) {
            mp4.at(matrix + places.at(number) + byte) =
                static_cast<char>(value >> (24 - 8 * byte) & 0xffU);
        }
    }
    return mp4;
}

Orientation turned(std::int32_t a, std::int32_t b, std::int32_t c, std::int32_t d) {
    const std::string bytes = numbers_of({a, b, 0, c, d, 0, 0, 0, 1 << 30});
    return orientation_of(
        std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
}

}  // namespace

TEST_SUITE("video reader") {
    TEST_CASE("frames are those shown at the requested times") {
        const TemporaryFolder folder;
        const std::string path = folder.file("a.mp4");
        write_drawn(path, {.width = 128, .height = 64, .fps = {24, 1}}, 48, {.quality = 95});
        struct Case {
            FrameRate fps;
            int most;
            std::vector<int> numbers;
        };
        for (const Case& one : {Case{{24, 1}, 4, {0, 1, 2, 3}}, Case{{8, 1}, 5, {0, 3, 6, 9, 12}},
                                Case{{48, 1}, 4, {0, 0, 1, 1}}, Case{{10, 1}, 4, {0, 2, 4, 7}},
                                Case{{1, 1}, 9, {0, 24}}, Case{{1, 10}, 9, {0}}}) {
            const auto reading = read_path(
                path, {.width = 128, .height = 64, .fps = one.fps, .max_frames = one.most});
            REQUIRE_MESSAGE(reading.report, reading.report.error().message);
            CHECK(reading.report->frames == static_cast<int>(one.numbers.size()));
            REQUIRE(reading.frames.size() == one.numbers.size());
            for (std::size_t index = 0; index < one.numbers.size(); ++index) {
                const int number = one.numbers[index];
                CAPTURE(number);
                CHECK(psnr(reading.frames[index], drawn(128, 64, number)) > 33);
                CHECK(psnr(reading.frames[index], drawn(128, 64, number)) >
                      psnr(reading.frames[index], drawn(128, 64, number + 1)) + 3);
            }
        }
    }

    TEST_CASE("containers that round times deliver each frame once") {
        const TemporaryFolder folder;
        const std::string path = folder.file("a.webm");
        make_media(path, {"-f", "lavfi", "-i", "testsrc2=s=64x64:r=30:d=2", "-c:v", "libvpx-vp9"});
        const auto reading =
            read_path(path, {.width = 64, .height = 64, .fps = {30, 1}, .max_frames = 1000});
        REQUIRE(reading.report);
        CHECK(reading.report->frames == 60);
        for (std::size_t index = 1; index < reading.frames.size(); ++index) {
            CHECK(reading.frames[index] != reading.frames[index - 1]);
        }
    }

    TEST_CASE("common containers and codecs are supported") {
        struct Case {
            std::string name;
            Strings codec;
        };
        const TemporaryFolder folder;
        for (const Case& one :
             {Case{"a.mp4", {"-c:v", "libx264"}}, Case{"a.mov", {"-c:v", "libx265"}},
              Case{"a.mkv", {"-c:v", "libx264", "-bf", "3"}}, Case{"a.webm", {"-c:v", "libvpx"}},
              Case{"b.webm", {"-c:v", "libvpx-vp9"}}, Case{"a.avi", {"-c:v", "mpeg4"}},
              Case{"b.avi", {"-c:v", "mjpeg"}}, Case{"a.mpg", {"-c:v", "mpeg1video"}},
              Case{"a.ts", {"-c:v", "mpeg2video"}}, Case{"a.flv", {"-c:v", "libx264"}},
              Case{"a.gif", {}}}) {
            CAPTURE(one.name);
            const std::string path = folder.file(one.name);
            make_media(path, corners(64, 48) + Strings{"-r", "25"} + one.codec);
            const auto reading =
                read_path(path, {.width = 64, .height = 48, .fps = {10, 1}, .max_frames = 3});
            REQUIRE_MESSAGE(reading.report, reading.report.error().message);
            CHECK(reading.report->frames == 3);
            CHECK(reading.report->damaged_packets == 0);
            CHECK(reading.report->input_width == 64);
            CHECK(reading.report->input_height == 48);
            CHECK_FALSE(reading.report->codec.empty());
            for (const Frame& frame : reading.frames) {
                CHECK(is_like(pixel(frame, 64, 10, 10), red));
                CHECK(is_like(pixel(frame, 64, 50, 10), green));
                CHECK(is_like(pixel(frame, 64, 10, 40), blue));
                CHECK(is_like(pixel(frame, 64, 50, 40), white));
            }
        }
    }

    TEST_CASE("a video from a phone is upright") {
        const TemporaryFolder folder;
        const std::string plain_path = folder.file("plain.mp4");
        make_media(plain_path, corners(64, 32) + Strings{"-c:v", "libx264", "-crf", "10"});
        const std::string upright = read_file(plain_path);
        struct Case {
            int degrees;
            std::array<std::int32_t, 4> matrix;
            int width;
            int height;
            std::array<std::array<int, 3>, 4> corners;
        };
        constexpr std::int32_t one_whole = 1 << 16;
        // Rotated to the right by so many degrees, as phones write it.
        for (const Case& one :
             {Case{90, {0, one_whole, -one_whole, 0}, 32, 64, {blue, red, white, green}},
              Case{180, {-one_whole, 0, 0, -one_whole}, 64, 32, {white, blue, green, red}},
              Case{270, {0, -one_whole, one_whole, 0}, 32, 64, {green, white, red, blue}}}) {
            CAPTURE(one.degrees);
            const std::string path = folder.file("turned.mp4");
            write_file(path, with_matrix(upright, one.matrix));
            const auto reading = read_path(
                path, {.width = one.width, .height = one.height, .fps = {10, 1}, .max_frames = 1});
            REQUIRE_MESSAGE(reading.report, reading.report.error().message);
            const auto shown =
                run_program({"ffmpeg", "-nostdin", "-v", "error", "-i", path, "-frames:v", "1",
                             "-f", "rawvideo", "-pix_fmt", "rgb24", "-"});
            REQUIRE(shown.output.size() == reading.frames[0].size());
            Frame theirs(shown.output.size());
            std::memcpy(theirs.data(), shown.output.data(), shown.output.size());
            CHECK(psnr(reading.frames[0], theirs) > 25);
            const int right = one.width - 6;
            const int bottom = one.height - 6;
            CHECK(is_like(pixel(reading.frames[0], one.width, 6, 6), one.corners[0]));
            CHECK(is_like(pixel(reading.frames[0], one.width, right, 6), one.corners[1]));
            CHECK(is_like(pixel(reading.frames[0], one.width, 6, bottom), one.corners[2]));
            CHECK(is_like(pixel(reading.frames[0], one.width, right, bottom), one.corners[3]));
        }
    }

    TEST_CASE("display matrices select one of eight orientations") {
        const std::string abc = "aaabbbcccdddeeefff";  // Three by two pixels.
        const auto shown = [&](const Orientation& orientation) {
            std::string result(abc.size(), ' ');
            turn({.first = reinterpret_cast<const std::uint8_t*>(abc.data()),
                  .row_bytes = 9,
                  .width = 3,
                  .height = 2},
                 orientation, std::as_writable_bytes(std::span(result)));
            std::string short_form;
            for (std::size_t index = 0; index < result.size(); index += 3) {
                short_form += result[index];
            }
            return short_form;
        };
        constexpr std::int32_t one = 1 << 16;
        CHECK(shown(turned(one, 0, 0, one)) == "abcdef");
        CHECK(shown(turned(-one, 0, 0, one)) == "cbafed");
        CHECK(shown(turned(one, 0, 0, -one)) == "defabc");
        CHECK(shown(turned(-one, 0, 0, -one)) == "fedcba");
        CHECK(shown(turned(0, one, one, 0)) == "adbecf");
        CHECK(shown(turned(0, one, -one, 0)) == "daebfc");
        CHECK(shown(turned(0, -one, one, 0)) == "cfbead");
        CHECK(shown(turned(0, -one, -one, 0)) == "fcebda");
        // By 85 degrees: nearest to a quarter turn.
        CHECK(shown(turned(5712, 65287, -65287, 5712)) == "daebfc");
        CHECK(orientation_of({}).upright());
        const std::int32_t lowest = std::numeric_limits<std::int32_t>::min();
        CHECK_FALSE(turned(lowest, lowest, lowest, lowest).transposed);
    }

    TEST_CASE("another shape is covered and cropped in the middle") {
        const TemporaryFolder folder;
        const std::string path = folder.file("a.mp4");
        // Three stripes: red and blue are cropped equally on both sides.
        const std::string stripe = "s=32x48:r=10:d=0.3";
        make_media(
            path, {"-f", "lavfi", "-i", "color=red:" + stripe, "-f", "lavfi", "-i",
                   "color=green:" + stripe, "-f", "lavfi", "-i", "color=blue:" + stripe,
                   "-filter_complex", "[0][1][2]hstack=inputs=3", "-c:v", "libx264", "-crf", "10"});
        const auto narrow =
            read_path(path, {.width = 32, .height = 48, .fps = {10, 1}, .max_frames = 1});
        REQUIRE(narrow.report);
        for (const int x : {3, 16, 28}) {
            CHECK(is_like(pixel(narrow.frames[0], 32, x, 24), green));
        }
        const auto wide =
            read_path(path, {.width = 192, .height = 48, .fps = {10, 1}, .max_frames = 1});
        REQUIRE(wide.report);
        CHECK(is_like(pixel(wide.frames[0], 192, 20, 5), red));
        CHECK(is_like(pixel(wide.frames[0], 192, 96, 40), green));
        CHECK(is_like(pixel(wide.frames[0], 192, 170, 40), blue));
    }

    TEST_CASE("the kept part of an image has the requested proportions") {
        const auto cut = [](int width, int height, double aspect, int to_width, int to_height) {
            const Crop kept = center_crop(width, height, aspect, to_width, to_height);
            return std::array<int, 4>{kept.left, kept.top, kept.width, kept.height};
        };
        CHECK(cut(1920, 1080, 1.0, 512, 512) == std::array<int, 4>{420, 0, 1080, 1080});
        CHECK(cut(1080, 1920, 1.0, 512, 512) == std::array<int, 4>{0, 420, 1080, 1080});
        CHECK(cut(640, 480, 1.0, 320, 240) == std::array<int, 4>{0, 0, 640, 480});
        // 720 pixels of 16:15 are 768 square ones.
        CHECK(cut(720, 576, 16.0 / 15.0, 400, 300) == std::array<int, 4>{0, 0, 720, 576});
        CHECK(cut(1, 40'000, 1.0, 8192, 1)[3] == 1);
        CHECK(cut(40'000, 1, 16.0, 1, 8192)[2] == 1);
    }

    TEST_CASE("non-square pixels are shown correctly") {
        const TemporaryFolder folder;
        const std::string path = folder.file("a.mp4");
        // 64x64 pixels, each twice as wide as high: 128x64 when shown.
        make_media(path, corners(64, 64) + Strings{"-aspect", "2:1", "-c:v", "libx264"});
        const auto reading =
            read_path(path, {.width = 128, .height = 64, .fps = {10, 1}, .max_frames = 1});
        REQUIRE(reading.report);
        CHECK(is_like(pixel(reading.frames[0], 128, 5, 5), red));
        CHECK(is_like(pixel(reading.frames[0], 128, 122, 58), white));
    }

    TEST_CASE("pixels are square if the file does not say") {
        const TemporaryFolder folder;
        const auto first_frame = [&](const std::string& ratio) {
            const std::string path = folder.file("a.mp4");
            make_media(path, {"-y", "-f", "lavfi", "-i", "testsrc2=s=64x64:r=10:d=0.3", "-vf",
                              "setsar=" + ratio, "-c:v", "libx264"});
            auto reading =
                read_path(path, {.width = 64, .height = 64, .fps = {10, 1}, .max_frames = 1});
            REQUIRE(reading.report);
            return std::move(reading.frames[0]);
        };
        const auto square = first_frame("1");
        CHECK(first_frame("0") == square);
        CHECK(first_frame("2") != square);
    }

    TEST_CASE("colors follow the file's metadata") {
        const TemporaryFolder folder;
        struct Case {
            std::string space;
            std::string range;
        };
        for (const Case& one :
             {Case{"bt709", "tv"}, Case{"bt709", "pc"}, Case{"smpte170m", "tv"}}) {
            CAPTURE(one.space);
            CAPTURE(one.range);
            const std::string path = folder.file("a.mp4");
            make_media(path, {"-y", "-f", "lavfi", "-i", "color=0xc83214:s=64x64:r=10:d=0.3", "-vf",
                              "scale=out_color_matrix=" + one.space + ":out_range=" + one.range,
                              "-pix_fmt", "yuv420p", "-colorspace", one.space, "-color_range",
                              one.range, "-c:v", "libx264", "-crf", "5"});
            const auto reading =
                read_path(path, {.width = 64, .height = 64, .fps = {10, 1}, .max_frames = 1});
            REQUIRE(reading.report);
            CHECK(is_like(pixel(reading.frames[0], 64, 30, 30), {200, 50, 20}, 4));
        }
    }

    TEST_CASE("a callback that has enough frames ends the work") {
        const TemporaryFolder folder;
        const std::string path = folder.file("a.mp4");
        write_drawn(path, {.width = 64, .height = 64, .fps = {10, 1}}, 20);
        int given = 0;
        auto source = open_file(path);
        REQUIRE(source);
        const auto stop = [&given](std::span<const std::byte>) { return ++given < 3; };
        const auto report = read_frames(
            **source, stop, {.width = 64, .height = 64, .fps = {10, 1}, .max_frames = 20});
        REQUIRE_FALSE(report);
        CHECK(report.error().code == ErrorCode::callback_failed);
        CHECK(given == 3);
    }

    TEST_CASE("invalid requests are refused") {
        const TemporaryFolder folder;
        const std::string path = folder.file("a.mp4");
        write_drawn(path, {.width = 64, .height = 64, .fps = {10, 1}}, 2);
        const FrameOptions good{.width = 64, .height = 64, .fps = {10, 1}, .max_frames = 1};
        std::vector<FrameOptions> wrong(6, good);
        wrong[0].width = 0;
        wrong[1].height = 8193;
        wrong[2].fps = {0, 1};
        wrong[3].fps = {1, 0};
        wrong[4].max_frames = 0;
        wrong[5].max_frames = 100'001;
        for (const FrameOptions& options : wrong) {
            const auto reading = read_path(path, options);
            REQUIRE_FALSE(reading.report);
            CHECK(reading.report.error().code == ErrorCode::invalid_argument);
        }
        CHECK(read_path(path, good).report);
    }
}
