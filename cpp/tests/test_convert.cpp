#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "polymux/media/convert.hpp"
#include "support.hpp"

using namespace polymux;
using namespace polymux::media;
using polymux::testing::as_bytes;
using polymux::testing::as_text;
using polymux::testing::make_media;
using polymux::testing::read_file;
using polymux::testing::run_program;
using polymux::testing::TemporaryFolder;

namespace {

struct Converted {
    Result<ConvertReport> report;
    std::string bytes;
};

Converted convert_file(const std::string& path, const ConvertOptions& options,
                       const ProgressCallback& on_progress = {}, const CancelToken& token = {}) {
    auto source = open_file(path);
    REQUIRE(source);
    std::vector<std::byte> output;
    Result<ConvertReport> report = Error{};
    {
        const auto sink = memory_sink(&output);
        report = convert_to_mp3(**source, *sink, options, on_progress, token);
    }
    return {std::move(report), as_text(output)};
}

std::string by_ffmpeg(const std::string& input, const std::string& output,
                      const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {"-i", input, "-vn"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    make_media(output, all);
    return read_file(output);
}

/// A sink that cannot go back, like a pipe.
class PipeSink final : public ByteSink {
public:
    explicit PipeSink(std::string& output) : output_(output) {}
    Result<void> write(std::span<const std::byte> bytes) override {
        output_ += as_text(bytes);
        ++writes;
        return {};
    }
    Result<void> patch(std::uint64_t /*offset_bytes*/,
                       std::span<const std::byte> /*bytes*/) override {
        return Error{.code = ErrorCode::internal, .message = "a pipe was patched"};
    }
    bool can_patch() const noexcept override { return false; }
    Result<void> commit() override {
        committed = true;
        return {};
    }
    bool committed = false;
    int writes = 0;

private:
    std::string& output_;
};

const std::vector<std::string> music = {
    "-f", "lavfi", "-i",
    "aevalsrc='0.4*sin(2*PI*(220+60*sin(t))*t)|0.4*sin(2*PI*330*t)+0.1*random(0)':s=44100:d=3"};

}  // namespace

TEST_SUITE("convert") {
    TEST_CASE("the report counts what was written") {
        const TemporaryFolder folder;
        const std::string input = folder.file("in.wav");
        make_media(input, music);
        std::vector<Progress> seen;
        const Converted ours =
            convert_file(input, {.bitrate_bps = 128'000}, [&seen](const Progress& progress) {
                seen.push_back(progress);
                return true;
            });
        REQUIRE(ours.report);
        CHECK(ours.report->samples == 3 * 44'100);
        CHECK(ours.report->duration_s == doctest::Approx(3.0));
        // The encoder's delay of 576 samples, the decoder's 529, and a complete last frame.
        CHECK(ours.report->frames == 116);
        CHECK(ours.report->bytes == static_cast<std::int64_t>(ours.bytes.size()));
        CHECK(ours.report->audio_bytes < ours.report->bytes);
        CHECK(ours.report->codec == "pcm_s16le");
        CHECK(ours.report->container == "wav");
        CHECK(ours.report->encoder.starts_with("LAME 3."));
        CHECK(ours.report->warnings.empty());
        REQUIRE_FALSE(seen.empty());
        CHECK(seen.back().position_s == doctest::Approx(3.0));
        CHECK(seen.back().bytes_written == ours.report->bytes);
    }

    TEST_CASE("NaN and infinite samples are silenced, counted and reported") {
        const TemporaryFolder folder;
        const std::string input = folder.file("in.wav");
        make_media(input,
                   {"-f", "lavfi", "-i", "sine=duration=1:sample_rate=44100", "-c:a", "pcm_f32le"});
        std::string content = read_file(input);
        constexpr std::size_t last_sample_bytes = 4;
        content.replace(content.size() - last_sample_bytes, last_sample_bytes, "\xff\xff\xff\x7f");
        polymux::testing::write_file(input, content);
        const Converted ours = convert_file(input, {.bitrate_bps = 128'000});
        REQUIRE(ours.report);
        REQUIRE(ours.report->warnings.size() == 1);
        CHECK(ours.report->warnings[0].code == "unusable_samples");
        CHECK(ours.report->warnings[0].count == 1);
    }

    TEST_CASE("a sink that cannot seek gets a complete file if it is short") {
        const TemporaryFolder folder;
        const std::string input = folder.file("in.wav");
        make_media(input, music);
        const ConvertOptions options{.bitrate_bps = 128'000};
        std::string piped;
        PipeSink sink(piped);
        auto source = open_file(input);
        REQUIRE(source);
        const auto report = convert_to_mp3(**source, sink, options);
        REQUIRE(report);
        CHECK(sink.committed);
        CHECK(piped == convert_file(input, options).bytes);
        CHECK(report->warnings.empty());
    }

    TEST_CASE("a long stream to a pipe arrives in batches and reports the missing Info frame") {
        const TemporaryFolder folder;
        const std::string input = folder.file("in.wav");
        make_media(input, {"-f", "lavfi", "-i", "sine=duration=500:sample_rate=44100"});
        std::string piped;
        PipeSink sink(piped);
        auto source = open_file(input);
        REQUIRE(source);
        const auto report = convert_to_mp3(
            **source, sink, {.bitrate_bps = 320'000, .preset = Preset::fast, .channels = 2});
        REQUIRE(report);
        CHECK(sink.writes > 2);
        REQUIRE(report->warnings.size() == 1);
        CHECK(report->warnings[0].code == "no_info_frame");
        CHECK(piped.substr(0, 2000).find("Info") == std::string::npos);
        CHECK(static_cast<std::int64_t>(piped.size()) == report->bytes);
    }

    TEST_CASE("cancellation and stopping end with their codes and commit nothing") {
        const TemporaryFolder folder;
        const std::string input = folder.file("in.wav");
        make_media(input, music);
        const CancelToken token;
        SUBCASE("a token set in advance") {
            token.cancel();
            const Converted ours = convert_file(input, {}, {}, token);
            REQUIRE_FALSE(ours.report);
            CHECK(ours.report.error().code == ErrorCode::cancelled);
            CHECK(ours.bytes.empty());
        }
        SUBCASE("a token set during the conversion") {
            const Converted ours = convert_file(
                input, {},
                [&token](const Progress&) {
                    token.cancel();
                    return true;
                },
                token);
            REQUIRE_FALSE(ours.report);
            CHECK(ours.report.error().code == ErrorCode::cancelled);
            CHECK(ours.bytes.empty());
        }
        SUBCASE("a progress callback that stops") {
            const Converted ours = convert_file(input, {}, [](const Progress&) { return false; });
            REQUIRE_FALSE(ours.report);
            CHECK(ours.report.error().code == ErrorCode::callback_failed);
            CHECK(ours.bytes.empty());
        }
    }

    TEST_CASE("every problem of the options is named in one error") {
        const auto checked = validate({.bitrate_bps = 5,
                                       .vbr_quality = 10,
                                       .sample_rate_hz = 44'000,
                                       .channels = 3,
                                       .start_s = 5,
                                       .end_s = 4,
                                       .id3v2_version = 2});
        REQUIRE_FALSE(checked);
        CHECK(checked.error().code == ErrorCode::invalid_argument);
        for (const char* name : {"bitrate", "vbr_quality", "sample_rate", "channels", "end",
                                 "id3v2_version", "together"}) {
            CHECK_MESSAGE(checked.error().message.find(name) != std::string::npos, name);
        }
        CHECK(validate({}));
        CHECK_FALSE(validate({.abr = true}));
        CHECK_FALSE(validate({.vbr_quality = std::numeric_limits<double>::quiet_NaN()}));
        CHECK_FALSE(validate({.start_s = -1}));
        CHECK_FALSE(validate({.end_s = std::numeric_limits<double>::infinity()}));
    }

    TEST_CASE("bitrates are parsed in all notations") {
        CHECK(*parse_bitrate("128k") == 128'000);
        CHECK(*parse_bitrate("128000") == 128'000);
        CHECK(*parse_bitrate("0.128M") == 128'000);
        CHECK(*parse_bitrate("44.1K") == 44'100);
        for (const char* text :
             {"", "k", "128kb", " 128k", "-1", "1e5", "nan", "inf", "0x10", "1_0"}) {
            const auto parsed = parse_bitrate(text);
            CHECK_MESSAGE(!parsed, text);
        }
    }
}

// scripts/check-ffmpeg-7 skips this suite, because its libraries are newer than the program.
TEST_SUITE("convert as the ffmpeg program does") {
    TEST_CASE("with identical_file, the whole file equals ffmpeg's") {
        const TemporaryFolder folder;
        const std::string input = folder.file("in.flac");
        std::vector<std::string> arguments = music;
        arguments.insert(arguments.end(), {"-metadata", "title=Größe", "-metadata", "artist=A"});
        make_media(input, arguments);
        ConvertOptions options;
        options.identical_file = true;

        SUBCASE("constant bitrate") {
            options.bitrate_bps = 128'000;
            const Converted ours = convert_file(input, options);
            REQUIRE(ours.report);
            CHECK(ours.bytes == by_ffmpeg(input, folder.file("r.mp3"), {"-b:a", "128k"}));
            CHECK(ours.report->mode == "cbr");
        }
        SUBCASE("average bitrate") {
            options.bitrate_bps = 112'000;
            options.abr = true;
            const Converted ours = convert_file(input, options);
            CHECK(ours.bytes ==
                  by_ffmpeg(input, folder.file("r.mp3"), {"-b:a", "112k", "-abr", "1"}));
        }
        SUBCASE("variable bitrate, a fraction between two qualities") {
            options.vbr_quality = 3.7;
            const Converted ours = convert_file(input, options);
            CHECK(ours.bytes == by_ffmpeg(input, folder.file("r.mp3"), {"-q:a", "3.7"}));
        }
        SUBCASE("the presets are LAME's qualities 4 and 7") {
            options.bitrate_bps = 96'000;
            options.preset = Preset::best;
            CHECK(
                convert_file(input, options).bytes ==
                by_ffmpeg(input, folder.file("4.mp3"), {"-b:a", "96k", "-compression_level", "4"}));
            options.preset = Preset::fast;
            CHECK(
                convert_file(input, options).bytes ==
                by_ffmpeg(input, folder.file("7.mp3"), {"-b:a", "96k", "-compression_level", "7"}));
        }
        SUBCASE("resampled and mixed down") {
            options.sample_rate_hz = 16'000;
            options.channels = 1;
            options.bitrate_bps = 48'000;
            const Converted ours = convert_file(input, options);
            CHECK(ours.bytes == by_ffmpeg(input, folder.file("r.mp3"),
                                          {"-b:a", "48k", "-ar", "16000", "-ac", "1"}));
            CHECK(ours.report->sample_rate_hz == 16'000);
            CHECK(ours.report->channels == 1);
        }
    }

    TEST_CASE("without a bitrate the result is VBR quality 0") {
        const TemporaryFolder folder;
        const std::string input = folder.file("in.wav");
        make_media(input, music);
        const Converted ours = convert_file(input, {.identical_file = true});
        CHECK(ours.bytes == by_ffmpeg(input, folder.file("r.mp3"), {"-q:a", "0"}));
        CHECK(ours.report->mode == "vbr");
    }

    TEST_CASE("a bitrate that does not exist at the rate is replaced with a warning") {
        const TemporaryFolder folder;
        const std::string input = folder.file("in.wav");
        make_media(input, music);
        const Converted ours =
            convert_file(input, {.bitrate_bps = 100'000, .identical_file = true});
        CHECK(ours.bytes == by_ffmpeg(input, folder.file("r.mp3"), {"-b:a", "100k"}));
        REQUIRE(ours.report->warnings.size() == 1);
        CHECK(ours.report->warnings[0].code == "bitrate_adjusted");
    }

    TEST_CASE("start and end cut like ffmpeg's -ss and -to") {
        const TemporaryFolder folder;
        for (const char* name : {"in.wav", "in.flac", "in.m4a", "in.mka"}) {
            const std::string input = folder.file(name);
            CAPTURE(input);
            make_media(input, music);
            const Converted ours = convert_file(
                input,
                {.bitrate_bps = 128'000, .start_s = 0.75, .end_s = 2.125, .identical_file = true});
            REQUIRE(ours.report);
            const std::string reference = folder.file("r.mp3");
            make_media(reference,
                       {"-ss", "0.75", "-to", "2.125", "-i", input, "-vn", "-b:a", "128k"});
            CHECK(ours.bytes == read_file(reference));
        }
    }
}
