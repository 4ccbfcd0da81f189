#include "polymux/video/writer.hpp"

#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <string>
#include <vector>

#include "media/ffmpeg.hpp"
#include "support.hpp"
#include "video_support.hpp"

using namespace polymux;
using namespace polymux::media;
using namespace polymux::video;
using polymux::testing::drawn;
using polymux::testing::open_writer;
using polymux::testing::plain;
using polymux::testing::psnr;
using polymux::testing::read_file;
using polymux::testing::read_path;
using polymux::testing::run_program;
using polymux::testing::TemporaryFolder;
using polymux::testing::write_drawn;

namespace {

/// The ffprobe program's properties of the video, one per line.
std::string facts(const std::string& path, const std::string& entries) {
    const auto result = run_program({"ffprobe", "-v", "error", "-count_frames", "-select_streams",
                                     "v:0", "-show_entries", "stream=" + entries, "-of",
                                     "default=noprint_wrappers=1", path});
    REQUIRE_MESSAGE(result.exit_status == 0, result.errors);
    return result.output;
}

Error refusal(const VideoFormat& format, const VideoWriterOptions& options = {}) {
    std::vector<std::byte> bytes;
    const auto sink = memory_sink(&bytes);
    const auto writer = VideoWriter::create(*sink, format, options);
    REQUIRE_FALSE(writer);
    return writer.error();
}

bool says(const Error& error, std::string_view text) {
    return error.message.find(text) != std::string::npos;
}

/// Keeps its bytes and has room for a limited number.
class SmallDisk final : public ByteSink {
public:
    explicit SmallDisk(std::size_t room) : inner_(memory_sink(&bytes_)), room_(room) {}

    Result<void> write(std::span<const std::byte> bytes) override {
        if (bytes.size() > room_) {
            return Error{.code = ErrorCode::output_failed, .message = "no space left"};
        }
        room_ -= bytes.size();
        return inner_->write(bytes);
    }
    Result<void> patch(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override {
        return inner_->patch(offset_bytes, bytes);
    }
    Result<std::size_t> read_back(std::uint64_t offset_bytes,
                                  std::span<std::byte> buffer) override {
        return inner_->read_back(offset_bytes, buffer);
    }
    [[nodiscard]] bool can_patch() const noexcept override { return true; }
    [[nodiscard]] bool can_read_back() const noexcept override { return true; }
    Result<void> commit() override {
        committed = true;
        return {};
    }

    bool committed = false;

private:
    std::vector<std::byte> bytes_;
    std::unique_ptr<ByteSink> inner_;
    std::size_t room_;
};

/// A pipe: written bytes cannot be changed.
class Pipe final : public ByteSink {
public:
    Result<void> write(std::span<const std::byte> /*bytes*/) override { return {}; }
    Result<void> patch(std::uint64_t /*offset_bytes*/,
                       std::span<const std::byte> /*bytes*/) override {
        return {};
    }
    [[nodiscard]] bool can_patch() const noexcept override { return false; }
    Result<void> commit() override { return {}; }
};

}  // namespace

TEST_SUITE("video writer") {
    TEST_CASE("frames have the same number, rate, size and look when read back") {
        for (const VideoCodec codec : {VideoCodec::vp9, VideoCodec::automatic}) {
            const TemporaryFolder folder;
            const std::string path = folder.file("a.mp4");
            const VideoFormat format{.width = 128, .height = 72, .fps = {10, 1}};
            const VideoReport report = write_drawn(path, format, 33, {.codec = codec});
            CAPTURE(report.encoder);
            CHECK(report.frames == 33);
            CHECK(report.duration_s == doctest::Approx(3.3));
            CHECK(report.bytes == static_cast<std::int64_t>(read_file(path).size()));
            CHECK(facts(path,
                        "codec_name,width,height,pix_fmt,r_frame_rate,avg_frame_rate,"
                        "nb_read_frames") ==
                  "codec_name=" + report.codec +
                      "\nwidth=128\nheight=72\npix_fmt=yuv420p\nr_frame_rate=10/1\n"
                      "avg_frame_rate=10/1\nnb_read_frames=33\n");
            // It can be played while it is loaded: the index comes first.
            const std::string content = read_file(path);
            CHECK(content.find("moov") < content.find("mdat"));
            CHECK(folder.entries() == std::vector<std::string>{"a.mp4"});
            const auto reading =
                read_path(path, {.width = 128, .height = 72, .fps = {10, 1}, .max_frames = 100});
            REQUIRE_MESSAGE(reading.report, reading.report.error().message);
            REQUIRE(reading.frames.size() == 33);
            for (int number = 0; number < 33; ++number) {
                const auto index = static_cast<std::size_t>(number);
                CHECK(psnr(reading.frames[index], drawn(128, 72, number)) > 33);
            }
        }
    }

    TEST_CASE("H.264 is used if an encoder for it exists, otherwise VP9") {
        const bool has_h264 = avcodec_find_encoder_by_name("libx264") != nullptr ||
                              avcodec_find_encoder_by_name("libopenh264") != nullptr;
        const VideoFormat format{.width = 64, .height = 64, .fps = {8, 1}};
        std::vector<std::byte> bytes;
        const auto sink = memory_sink(&bytes);
        CHECK(open_writer(*sink, format, {.codec = VideoCodec::vp9})->encoder() == "libvpx-vp9");
        CHECK((open_writer(*sink, format)->encoder() == "libvpx-vp9") == !has_h264);
        const auto asked = VideoWriter::create(*sink, format, {.codec = VideoCodec::h264});
        REQUIRE(asked.has_value() == has_h264);
        if (asked) return;
        CHECK(asked.error().code == ErrorCode::encoder_failed);
        CHECK(says(asked.error(), "vp9 or auto"));
    }

    TEST_CASE("any rate is exact") {
        const TemporaryFolder folder;
        struct Case {
            FrameRate fps;
            std::string text;
        };
        for (const Case& one :
             {Case{{30'000, 1001}, "30000/1001"}, Case{{24'000, 1001}, "24000/1001"},
              Case{{7, 3}, "7/3"}, Case{{50, 2}, "25/1"}, Case{{1, 2}, "1/2"},
              Case{{60, 1}, "60/1"}}) {
            for (const VideoCodec codec : {VideoCodec::vp9, VideoCodec::automatic}) {
                CAPTURE(one.text);
                const std::string path = folder.file("rate.mp4");
                const VideoReport report =
                    write_drawn(path, {.width = 32, .height = 32, .fps = one.fps}, 9,
                                {.codec = codec, .threads = 1});
                CHECK(std::to_string(report.fps.numerator) + "/" +
                          std::to_string(report.fps.denominator) ==
                      one.text);
                CHECK(facts(path, "r_frame_rate,avg_frame_rate,nb_frames,nb_read_frames") ==
                      "r_frame_rate=" + one.text + "\navg_frame_rate=" + one.text +
                          "\nnb_frames=9\nnb_read_frames=9\n");
            }
        }
    }

    TEST_CASE("one frame is a video, and times begin at 0") {
        const TemporaryFolder folder;
        const std::string path = folder.file("one.mp4");
        write_drawn(path, {.width = 64, .height = 48, .fps = {8, 1}}, 1);
        CHECK(facts(path, "start_pts,duration,nb_read_frames") ==
              "start_pts=0\nduration=0.125000\nnb_read_frames=1\n");
    }

    TEST_CASE("odd sizes become even, and nothing is lost") {
        for (const VideoCodec codec : {VideoCodec::vp9, VideoCodec::automatic}) {
            const TemporaryFolder folder;
            const std::string path = folder.file("odd.mp4");
            const VideoReport report =
                write_drawn(path, {.width = 65, .height = 33, .fps = {10, 1}}, 3, {.codec = codec});
            CHECK(report.width == 66);
            CHECK(report.height == 34);
            CHECK(facts(path, "width,height") == "width=66\nheight=34\n");
            const auto reading =
                read_path(path, {.width = 66, .height = 34, .fps = {10, 1}, .max_frames = 1});
            REQUIRE(reading.report);
            const auto pixel = [](const std::vector<std::byte>& frame, int x, int y, int width) {
                return std::to_integer<int>(frame[static_cast<std::size_t>((y * width + x) * 3)]);
            };
            const std::vector<std::byte> original = drawn(65, 33, 0);
            // The last column appears twice.
            CHECK(pixel(reading.frames[0], 64, 20, 66) ==
                  doctest::Approx(pixel(original, 64, 20, 65)).epsilon(0.05));
            CHECK(pixel(reading.frames[0], 65, 20, 66) ==
                  doctest::Approx(pixel(original, 64, 20, 65)).epsilon(0.05));
        }
    }

    TEST_CASE("colors are BT.709 in limited range, and tagged so") {
        const TemporaryFolder folder;
        for (const VideoCodec codec : {VideoCodec::vp9, VideoCodec::automatic}) {
            const std::string path = folder.file("colour.mp4");
            auto sink = create_file_sink(path);
            REQUIRE(sink);
            const auto writer =
                open_writer(**sink, {.width = 64, .height = 64, .fps = {10, 1}}, {.codec = codec});
            REQUIRE(writer->write(plain(64, 64, 255, 0, 0)));
            REQUIRE(writer->finish());
            CHECK(facts(path, "color_range,color_space,color_transfer,color_primaries") ==
                  "color_range=tv\ncolor_space=bt709\ncolor_transfer=bt709\n"
                  "color_primaries=bt709\n");
            // Pure red by BT.709's formula: 63, 102, 240.
            const auto raw = run_program({"ffmpeg", "-nostdin", "-v", "error", "-i", path, "-f",
                                          "rawvideo", "-pix_fmt", "yuv420p", "-"});
            REQUIRE(raw.output.size() == 64 * 64 * 3 / 2);
            const auto at = [&raw](std::size_t index) {
                return static_cast<int>(static_cast<unsigned char>(raw.output[index]));
            };
            CHECK(at(2000) == doctest::Approx(63).epsilon(0.03));
            CHECK(at(4096 + 500) == doctest::Approx(102).epsilon(0.03));
            CHECK(at(4096 + 1024 + 500) == doctest::Approx(240).epsilon(0.03));
        }
    }

    TEST_CASE("the same frames make the same file") {
        const TemporaryFolder folder;
        for (const VideoCodec codec : {VideoCodec::vp9, VideoCodec::automatic}) {
            for (const int threads : {0, 1, 2}) {
                CAPTURE(threads);
                const VideoFormat format{
                    .width = threads == 1 ? 144 : 96, .height = 64, .fps = {10, 1}};
                const VideoWriterOptions options{.codec = codec, .threads = threads};
                const VideoReport report = write_drawn(folder.file("a.mp4"), format, 12, options);
                CAPTURE(report.encoder);
                const std::string first = read_file(folder.file("a.mp4"));
                for (int again = 0; again < 3; ++again) {
                    // Fills memory with different values.
                    mallopt(M_PERTURB, 1 + 100 * again);
                    write_drawn(folder.file("b.mp4"), format, 12, options);
                    mallopt(M_PERTURB, 0);
                    CHECK(first.compare(read_file(folder.file("b.mp4"))) == 0);
                }
            }
        }
    }

    TEST_CASE("higher quality means more bytes and better similarity") {
        const TemporaryFolder folder;
        for (const VideoCodec codec : {VideoCodec::vp9, VideoCodec::automatic}) {
            const VideoFormat format{.width = 160, .height = 96, .fps = {10, 1}};
            std::int64_t bytes = 0;
            double likeness = 0;
            for (const int quality : {1, 50, 100}) {
                const std::string path = folder.file("q.mp4");
                const VideoReport report =
                    write_drawn(path, format, 8, {.codec = codec, .quality = quality});
                CHECK(report.bytes > bytes);
                bytes = report.bytes;
                const auto reading =
                    read_path(path, {.width = 160, .height = 96, .fps = {10, 1}, .max_frames = 8});
                const double now = psnr(reading.frames[5], drawn(160, 96, 5));
                CHECK(now > likeness);
                likeness = now;
            }
        }
    }

    TEST_CASE("sizes from one pixel up are accepted") {
        const TemporaryFolder folder;
        for (const VideoCodec codec : {VideoCodec::vp9, VideoCodec::automatic}) {
            for (const int side : {1, 2, 3, 8, 15, 17}) {
                const VideoReport report = write_drawn(
                    folder.file("small.mp4"), {.width = side, .height = side, .fps = {5, 1}}, 3,
                    {.codec = codec});
                CHECK(report.width == side + side % 2);
            }
        }
    }

    TEST_CASE("invalid arguments are refused with the reason") {
        CHECK(says(refusal({.width = 0, .height = 32, .fps = {8, 1}}), "0x32 pixels"));
        CHECK(says(refusal({.width = 32, .height = 8193, .fps = {8, 1}}), "8192"));
        CHECK(says(refusal({.width = 32, .height = 32, .fps = {0, 1}}), "got 0/1"));
        CHECK(says(refusal({.width = 32, .height = 32, .fps = {1, 0}}), "got 1/0"));
        CHECK(says(refusal({.width = 32, .height = 32, .fps = {1001, 1}}), "got 1001/1"));
        const VideoFormat good{.width = 32, .height = 32, .fps = {8, 1}};
        CHECK(says(refusal(good, {.quality = 0}), "quality: out of range (got 0,"));
        CHECK(says(refusal(good, {.quality = 101}), "quality: out of range (got 101,"));
        CHECK(says(refusal(good, {.threads = -1}), "threads: invalid value (got -1,"));
        Pipe pipe;
        const auto piped = VideoWriter::create(pipe, good);
        REQUIRE_FALSE(piped);
        CHECK(piped.error().code == ErrorCode::invalid_argument);
    }

    TEST_CASE("a frame of another size ends the work") {
        std::vector<std::byte> bytes;
        {
            const auto sink = memory_sink(&bytes);
            const auto writer = open_writer(*sink, {.width = 32, .height = 32, .fps = {8, 1}});
            REQUIRE(writer->write(drawn(32, 32, 0)));
            const auto wrong = writer->write(drawn(32, 31, 1));
            REQUIRE_FALSE(wrong);
            CHECK(says(wrong.error(), "2976 bytes"));
            CHECK(says(wrong.error(), "3072"));
            CHECK_FALSE(writer->write(drawn(32, 32, 1)));
            CHECK_FALSE(writer->finish());
        }
        CHECK(bytes.empty());
    }

    TEST_CASE("a video without frames is invalid, and no video is finished twice") {
        const TemporaryFolder folder;
        {
            auto sink = create_file_sink(folder.file("none.mp4"));
            REQUIRE(sink);
            const auto writer = open_writer(**sink, {.width = 32, .height = 32, .fps = {8, 1}});
            const auto report = writer->finish();
            REQUIRE_FALSE(report);
        }
        CHECK(folder.entries().empty());
        std::vector<std::byte> bytes;
        const auto sink = memory_sink(&bytes);
        const auto writer = open_writer(*sink, {.width = 32, .height = 32, .fps = {8, 1}});
        REQUIRE(writer->write(drawn(32, 32, 0)));
        REQUIRE(writer->finish());
        CHECK_FALSE(writer->finish());
        CHECK_FALSE(writer->write(drawn(32, 32, 0)));
    }

    TEST_CASE("a canceled writer stops at the next frame and leaves nothing") {
        for (const VideoCodec codec : {VideoCodec::vp9, VideoCodec::automatic}) {
            const TemporaryFolder folder;
            {
                auto sink = create_file_sink(folder.file("a.mp4"));
                REQUIRE(sink);
                const CancelToken token;
                const auto writer = open_writer(**sink, {.width = 64, .height = 64, .fps = {8, 1}},
                                                {.codec = codec}, token);
                REQUIRE(writer->write(drawn(64, 64, 0)));
                token.cancel();
                const auto written = writer->write(drawn(64, 64, 1));
                REQUIRE_FALSE(written);
                CHECK(written.error().code == ErrorCode::cancelled);
                const auto report = writer->finish();
                REQUIRE_FALSE(report);
                CHECK(report.error().code == ErrorCode::cancelled);
            }
            CHECK(folder.entries().empty());
        }
    }

    TEST_CASE("a full disk is reported wherever it happens") {
        std::vector<std::byte> whole;
        const auto frames = [](VideoWriter& writer) -> Result<VideoReport> {
            for (int number = 0; number < 6; ++number) {
                if (auto written = writer.write(drawn(64, 64, number)); !written) {
                    return written.error();
                }
            }
            return writer.finish();
        };
        const VideoFormat format{.width = 64, .height = 64, .fps = {8, 1}};
        {
            const auto sink = memory_sink(&whole);
            const auto writer = open_writer(*sink, format);
            REQUIRE(frames(*writer));
        }
        for (std::size_t room = 0; room < whole.size(); room += 1 + whole.size() / 7) {
            CAPTURE(room);
            SmallDisk disk(room);
            auto writer = VideoWriter::create(disk, format);
            const auto report =
                writer ? frames(**writer) : Result<VideoReport>(std::move(writer.error()));
            REQUIRE_FALSE(report);
            CHECK(report.error().code == ErrorCode::output_failed);
            CHECK(report.error().message == "no space left");
            CHECK_FALSE(disk.committed);
        }
        SmallDisk enough(2 * whole.size());
        CHECK(frames(*open_writer(enough, format)));
        CHECK(enough.committed);
    }
}
