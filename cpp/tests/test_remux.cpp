#include "polymux/media/remux.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "polymux/media/probe.hpp"
#include "support.hpp"

using namespace polymux;
using namespace polymux::media;
using polymux::testing::as_bytes;
using polymux::testing::make_media;
using polymux::testing::read_file;
using polymux::testing::run_program;
using polymux::testing::TemporaryFolder;
using polymux::testing::write_file;

namespace {

const std::vector<std::string> picture = {"-f", "lavfi", "-i", "testsrc2=s=96x64:r=25:d=2"};
const std::vector<std::string> sound = {"-f", "lavfi", "-i", "sine=duration=2:sample_rate=44100"};

std::vector<std::string> operator+(std::vector<std::string> left,
                                   const std::vector<std::string>& right) {
    left.insert(left.end(), right.begin(), right.end());
    return left;
}

Result<RemuxReport> remux_files(const std::vector<std::string>& inputs, const std::string& output,
                                const RemuxOptions& options = {},
                                const ProgressCallback& on_progress = {},
                                const CancelToken& token = {}) {
    std::vector<std::unique_ptr<ByteSource>> owners;
    std::vector<ByteSource*> sources;
    for (const std::string& input : inputs) {
        auto source = open_file(input);
        REQUIRE(source);
        sources.push_back(source->get());
        owners.push_back(std::move(*source));
    }
    auto sink = create_file_sink(output);
    REQUIRE(sink);
    return remux(sources, **sink, options, on_progress, token);
}

/// One line per packet of the stream: the decoder's input, as a hash.
std::string payload(const std::string& path, const std::string& stream) {
    const auto result =
        run_program({"ffmpeg", "-nostdin", "-v", "error", "-i", "file:" + path, "-map",
                     "0:" + stream, "-c", "copy", "-f", "streamhash", "-hash", "md5", "-"});
    REQUIRE_MESSAGE(result.exit_status == 0, result.errors);
    return result.output.substr(result.output.find('=') + 1);
}

/// The decoded frames and their times.
std::string frames(const std::string& path, const std::string& stream) {
    const auto result = run_program({"ffmpeg", "-nostdin", "-v", "error", "-i", "file:" + path,
                                     "-map", "0:" + stream, "-f", "framemd5", "-"});
    REQUIRE_MESSAGE(result.exit_status == 0, result.errors);
    std::string hashes;
    std::size_t begin = 0;
    while (begin < result.output.size()) {
        const std::size_t end = result.output.find('\n', begin);
        const std::string line = result.output.substr(begin, end - begin);
        if (!line.starts_with('#')) hashes += line.substr(line.rfind(',') + 1) + "\n";
        begin = end + 1;
    }
    return hashes;
}

std::string first_time(const std::string& path, const std::string& stream) {
    const auto result =
        run_program({"ffprobe", "-v", "error", "-select_streams", stream, "-read_intervals", "%+#1",
                     "-show_entries", "packet=pts_time", "-of", "csv=p=0", path});
    return result.output.substr(0, result.output.find_first_of(",\n"));
}

MediaInfo probed(const std::string& path) {
    auto source = open_file(path);
    REQUIRE(source);
    auto info = probe(**source);
    REQUIRE(info);
    return *info;
}

}  // namespace

TEST_SUITE("remux") {
    TEST_CASE("video and audio files become one MP4 with the same packets") {
        const TemporaryFolder folder;
        const std::string video = folder.file("video.mp4");
        const std::string audio = folder.file("audio.m4a");
        const std::string output = folder.file("both.mp4");
        make_media(video, picture + std::vector<std::string>{"-c:v", "libx264"});
        make_media(audio, sound + std::vector<std::string>{"-c:a", "aac"});
        const auto report = remux_files({video, audio}, output);
        REQUIRE_MESSAGE(report, report.error().message);
        CHECK(report->container == "mp4");
        CHECK(report->content_type == "video/mp4");
        CHECK(report->extension == "mp4");
        CHECK(report->duration_s == doctest::Approx(2.0).epsilon(0.02));
        CHECK(report->bytes == static_cast<std::int64_t>(read_file(output).size()));
        REQUIRE(report->streams.size() == 2);
        CHECK(report->streams[0].codec == "h264");
        CHECK(report->streams[0].packets == 50);
        CHECK(report->streams[1].input == 1);
        CHECK(report->warnings.empty());
        CHECK(payload(output, "v") == payload(video, "v"));
        CHECK(payload(output, "a") == payload(audio, "a"));
        CHECK(frames(output, "v") == frames(video, "v"));
        CHECK(frames(output, "a") == frames(audio, "a"));
        // It can be played while it is loaded: the index comes first.
        const std::string content = read_file(output);
        CHECK(content.find("moov") < content.find("mdat"));
        CHECK(folder.entries().size() == 3);
    }

    TEST_CASE("MPEG-TS with ADTS becomes MP4 and begins at 0") {
        const TemporaryFolder folder;
        const std::string input = folder.file("a.ts");
        const std::string output = folder.file("a.mp4");
        make_media(input, picture + sound +
                              std::vector<std::string>{"-c:v", "libx264", "-c:a", "aac",
                                                       "-output_ts_offset", "7"});
        const auto report = remux_files({input}, output);
        REQUIRE_MESSAGE(report, report.error().message);
        CHECK(report->container == "mp4");
        CHECK(frames(output, "v") == frames(input, "v"));
        CHECK(frames(output, "a") == frames(input, "a"));
        // The audio begins before the first image, with data that its decoder needs.
        CHECK(first_time(output, "a").substr(0, 4) == "0.00");
        CHECK(first_time(output, "v").substr(0, 4) == "0.02");
        const MediaInfo info = probed(output);
        CHECK(info.duration_s.value_or(0) == doctest::Approx(2.0).epsilon(0.05));
    }

    TEST_CASE("reordered images keep their times when Matroska becomes MP4") {
        const TemporaryFolder folder;
        const std::string input = folder.file("a.mkv");
        const std::string output = folder.file("a.mp4");
        make_media(input, picture + std::vector<std::string>{"-c:v", "libx264", "-bf", "3"});
        const auto report = remux_files({input}, output);
        REQUIRE_MESSAGE(report, report.error().message);
        CHECK(report->container == "mp4");
        CHECK(report->warnings.empty());
        CHECK(frames(output, "v") == frames(input, "v"));
        CHECK(first_time(output, "v").substr(0, 4) == "0.00");
    }

    TEST_CASE("the codecs select the container, unless the caller does") {
        struct Case {
            const char* video;
            const char* audio;
            const char* suffix;
            const char* container;
            const char* extension;
        };
        const TemporaryFolder folder;
        for (const Case& tried : {Case{"libvpx-vp9", "libopus", ".webm", "webm", "webm"},
                                  Case{"libx264", "libvorbis", ".mkv", "matroska", "mkv"},
                                  Case{"mpeg4", "ac3", ".mkv", "mp4", "mp4"}}) {
            CAPTURE(tried.container);
            const std::string input = folder.file(std::string("input") + tried.suffix);
            const std::string output = folder.file("output");
            make_media(input, picture + sound +
                                  std::vector<std::string>{"-deadline", "realtime", "-c:v",
                                                           tried.video, "-c:a", tried.audio});
            const auto report = remux_files({input}, output);
            REQUIRE_MESSAGE(report, report.error().message);
            CHECK(report->container == tried.container);
            CHECK(report->extension == tried.extension);
            CHECK(frames(output, "v") == frames(input, "v"));
            CHECK(frames(output, "a") == frames(input, "a"));
            const auto forced =
                remux_files({input}, output, {.container = RemuxContainer::matroska});
            REQUIRE(forced);
            CHECK(forced->container == "matroska");
        }
        const auto refused = remux_files({folder.file("input.mkv")}, folder.file("no.webm"),
                                         {.container = RemuxContainer::webm});
        REQUIRE_FALSE(refused);
        CHECK(refused.error().code == ErrorCode::unsupported_media);
        CHECK(refused.error().message.find("mpeg4 and ac3") != std::string::npos);
        CHECK_FALSE(std::ranges::count(folder.entries(), "no.webm"));
    }

    TEST_CASE("VP9 of every pixel format becomes a readable MP4") {
        const TemporaryFolder folder;
        const std::string input = folder.file("a.webm");
        const std::string output = folder.file("a.mp4");
        for (const char* pixels : {"yuv420p", "yuv444p", "yuv422p10", "gbrp", "yuv440p"}) {
            CAPTURE(pixels);
            make_media(input,
                       {"-f", "lavfi", "-i", "testsrc2=s=96x64:r=25:d=0.4", "-c:v", "libvpx-vp9",
                        "-deadline", "realtime", "-cpu-used", "8", "-pix_fmt", pixels});
            const auto report = remux_files({input}, output);
            if (std::string_view(pixels) == "yuv440p") {
                REQUIRE_FALSE(report);
                CHECK(report.error().code == ErrorCode::unsupported_media);
                continue;
            }
            REQUIRE_MESSAGE(report, report.error().message);
            CHECK(report->container == "mp4");
            CHECK(frames(output, "v") == frames(input, "v"));
        }
    }

    TEST_CASE("audio stays in sync with video") {
        const TemporaryFolder folder;
        const std::string video = folder.file("video.ts");
        const std::string audio = folder.file("audio.ts");
        const std::string output = folder.file("both.mp4");
        const auto mp3_at = [](const char* offset_s) {
            return sound + std::vector<std::string>{"-c:a", "mp2", "-output_ts_offset", offset_s};
        };
        make_media(video, picture + std::vector<std::string>{"-c:v", "mpeg2video",
                                                             "-output_ts_offset", "20"});
        make_media(audio, mp3_at("20.5"));
        auto report = remux_files({video, audio}, output);
        REQUIRE_MESSAGE(report, report.error().message);
        CHECK(report->container == "matroska");
        CHECK(first_time(output, "v").substr(0, 4) == "0.00");
        const double apart_s =
            std::stod(first_time(audio, "a")) - std::stod(first_time(video, "v"));
        CHECK(std::stod(first_time(output, "a")) == doctest::Approx(apart_s).epsilon(0.01));
        // Too far apart to share a clock.
        make_media(audio, mp3_at("2000"));
        report = remux_files({video, audio}, output);
        REQUIRE_MESSAGE(report, report.error().message);
        CHECK(first_time(output, "v").substr(0, 4) == "0.00");
        CHECK(first_time(output, "a").substr(0, 4) == "0.00");
    }

    TEST_CASE("a clock that jumps is corrected, audio and video together") {
        const TemporaryFolder folder;
        const std::string output = folder.file("joined.mp4");
        std::string joined;
        for (const char* offset_s : {"100", "5000", "40"}) {
            const std::string part = folder.file("part.ts");
            make_media(part, picture + sound +
                                 std::vector<std::string>{"-c:v", "libx264", "-c:a", "aac",
                                                          "-output_ts_offset", offset_s});
            joined += read_file(part);
        }
        const std::string input = folder.file("joined.ts");
        write_file(input, joined);
        const auto report = remux_files({input}, output);
        REQUIRE_MESSAGE(report, report.error().message);
        CHECK(report->duration_s == doctest::Approx(6.0).epsilon(0.03));
        CHECK(report->streams[0].packets == 150);
        const MediaInfo info = probed(output);
        for (const StreamInfo& stream : info.streams) {
            CHECK(stream.duration_s.value_or(0) == doctest::Approx(6.0).epsilon(0.03));
        }
    }

    TEST_CASE("tags, chapters, language and rotation are kept, other data is dropped") {
        const TemporaryFolder folder;
        const std::string chapters = folder.file("chapters.txt");
        write_file(chapters,
                   ";FFMETADATA1\ntitle=Naïve\nartist=Somebody\n[CHAPTER]\nTIMEBASE=1/1000\n"
                   "START=0\nEND=900\ntitle=One\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=900\nEND=2000\n"
                   "title=Two\n");
        const std::string subtitle = folder.file("a.srt");
        write_file(subtitle, "1\n00:00:00,000 --> 00:00:01,000\nWords\n");
        const std::string input = folder.file("a.mkv");
        const std::string output = folder.file("a.mp4");
        make_media(input, picture + sound +
                              std::vector<std::string>{"-i",
                                                       chapters,
                                                       "-i",
                                                       subtitle,
                                                       "-map",
                                                       "0",
                                                       "-map",
                                                       "1",
                                                       "-map",
                                                       "3",
                                                       "-map_metadata",
                                                       "2",
                                                       "-c:v",
                                                       "libx264",
                                                       "-c:a",
                                                       "aac",
                                                       "-metadata:s:a",
                                                       "language=deu",
                                                       "-color_primaries",
                                                       "bt709",
                                                       "-colorspace",
                                                       "bt709",
                                                       "-color_trc",
                                                       "bt709"});
        REQUIRE(remux_files({input}, output));
        const MediaInfo info = probed(output);
        const auto tag = [&info](const std::string& key) {
            for (const auto& [name, value] : info.tags) {
                if (name == key) return value;
            }
            return std::string();
        };
        CHECK(tag("title") == "Naïve");
        CHECK(tag("artist") == "Somebody");
        REQUIRE(info.chapters.size() == 2);
        CHECK(info.chapters[1].start_ms == 900);
        CHECK(info.chapters[1].tags.at(0).second == "Two");
        CHECK(std::ranges::count_if(info.streams, [](const StreamInfo& stream) {
                  return stream.type == "subtitle";
              }) == 0);
        REQUIRE(info.best_audio_stream);
        CHECK(info.streams[static_cast<std::size_t>(*info.best_audio_stream)].language == "deu");
        const auto colours =
            run_program({"ffprobe", "-v", "error", "-select_streams", "v", "-show_entries",
                         "stream=color_space", "-of", "csv=p=0", output});
        CHECK(colours.output.starts_with("bt709"));
        const std::string turned = folder.file("turned.mp4");
        make_media(turned,
                   {"-i", output, "-map", "0:v", "-c", "copy", "-metadata:s:v", "rotate=90"});
        REQUIRE(remux_files({turned}, output));
        const auto rotation = run_program({"ffprobe", "-v", "error", "-show_entries",
                                           "stream_side_data=rotation", "-of", "csv=p=0", output});
        CHECK(rotation.output.find("90") != std::string::npos);
    }

    TEST_CASE("progress increases to the end, and a callback may stop the work") {
        const TemporaryFolder folder;
        const std::string input = folder.file("a.mkv");
        const std::string output = folder.file("a.mp4");
        make_media(input, picture + std::vector<std::string>{"-c:v", "mpeg4"});
        std::vector<Progress> updates;
        const auto report = remux_files({input}, output, {}, [&updates](const Progress& progress) {
            updates.push_back(progress);
            return true;
        });
        REQUIRE(report);
        REQUIRE_FALSE(updates.empty());
        CHECK(updates.back().position_s == doctest::Approx(report->duration_s));
        CHECK(updates.back().bytes_written == report->bytes);
        const auto stopped =
            remux_files({input}, folder.file("b.mp4"), {}, [](const Progress&) { return false; });
        REQUIRE_FALSE(stopped);
        CHECK(stopped.error().code == ErrorCode::callback_failed);
        CHECK_FALSE(std::ranges::count(folder.entries(), "b.mp4"));
    }
}
