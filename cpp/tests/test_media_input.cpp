#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "media/formats.hpp"
#include "media/opened_input.hpp"
#include "polymux/media/pcm.hpp"
#include "polymux/media/probe.hpp"
#include "support.hpp"

using namespace polymux;
using namespace polymux::media;
using polymux::testing::as_bytes;
using polymux::testing::make_media;
using polymux::testing::run_program;
using polymux::testing::TemporaryFolder;
using polymux::testing::write_file;

namespace {

Result<MediaInfo> probe_text(std::string_view content, const Limits& limits = {}) {
    const auto source = memory_source(as_bytes(content), "given bytes");
    return probe(*source, limits);
}

Result<MediaInfo> probe_file(const std::string& path, const Limits& limits = {}) {
    auto source = open_file(path);
    REQUIRE(source);
    return probe(**source, limits);
}

ChannelLayout layout(const char* name) {
    AVChannelLayout parsed{};
    REQUIRE(av_channel_layout_from_string(&parsed, name) == 0);
    const ChannelLayout result(parsed);
    av_channel_layout_uninit(&parsed);
    return result;
}

/// The maximum resident memory since the last call of this function.
std::int64_t peak_memory_bytes() {
    std::ifstream status("/proc/self/status");
    std::int64_t kilobytes = 0;
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmHWM:")) kilobytes = std::stoll(line.substr(6));
    }
    std::ofstream("/proc/self/clear_refs") << "5";  // Resets the peak to the current resident size.
    return kilobytes * 1024;
}

/// A source that fails at its n-th read.
class FailingSource final : public ByteSource {
public:
    FailingSource(ByteSource& inner, int good_reads) : inner_(inner), left_(good_reads) {}
    Result<std::size_t> read(std::span<std::byte> buffer) override {
        if (left_-- <= 0) return Error{.code = ErrorCode::callback_failed, .message = "planted"};
        return inner_.read(buffer);
    }
    Result<void> seek(std::uint64_t offset_bytes) override { return inner_.seek(offset_bytes); }
    bool seekable() const noexcept override { return inner_.seekable(); }
    std::optional<std::uint64_t> size_bytes() const noexcept override {
        return inner_.size_bytes();
    }
    const std::string& name() const noexcept override { return inner_.name(); }

private:
    ByteSource& inner_;
    int left_;
};

}  // namespace

TEST_SUITE("media input") {
    TEST_CASE("input that is not self-contained media is refused as unsupported") {
        for (const char* content :
             {"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nfile:///etc/hostname\n",
              "ffconcat version 1.0\nfile other.wav\n",
              "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nm=audio 5004 RTP/AVP 0\n",
              "just some text that goes on for a while and is no audio at all\n",
              "{\"json\": [1, 2, 3]}"}) {
            const auto info = probe_text(content);
            REQUIRE_FALSE(info);
            CHECK_MESSAGE(info.error().code == ErrorCode::unsupported_media, content);
            CHECK(info.error().input_name == "given bytes");
        }
        const auto empty = probe_text("");
        REQUIRE_FALSE(empty);
        CHECK(empty.error().code == ErrorCode::undecodable);
    }

    TEST_CASE("probe reports container, streams, tags, chapters and cover") {
        const TemporaryFolder folder;
        const std::string picture = folder.file("cover.png");
        make_media(picture, {"-f", "lavfi", "-i", "color=red:size=16x16", "-frames:v", "1"});
        const std::string chapters = folder.file("chapters.txt");
        write_file(chapters,
                   ";FFMETADATA1\ntitle=Naïve\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=500\n"
                   "title=One\n");
        const std::string path = folder.file("a.m4a");
        make_media(path, {"-f",
                          "lavfi",
                          "-i",
                          "sine=duration=1:sample_rate=48000",
                          "-i",
                          picture,
                          "-i",
                          chapters,
                          "-map",
                          "0",
                          "-map",
                          "1",
                          "-map_metadata",
                          "2",
                          "-c:v",
                          "copy",
                          "-disposition:v:0",
                          "attached_pic",
                          "-ac",
                          "2"});
        const auto info = probe_file(path);
        REQUIRE(info);
        CHECK(info->container == "mov,mp4,m4a,3gp,3g2,mj2");
        CHECK(info->duration_s.value_or(0) == doctest::Approx(1.0).epsilon(0.05));
        REQUIRE(info->best_audio_stream);
        const StreamInfo& audio = info->streams[static_cast<std::size_t>(*info->best_audio_stream)];
        CHECK(audio.codec == "aac");
        CHECK(audio.sample_rate_hz == 48'000);
        CHECK(audio.channels == 2);
        CHECK(audio.channel_layout == "stereo");
        REQUIRE(info->chapters.size() == 1);
        CHECK(info->chapters[0].end_ms == 500);
        CHECK(info->chapters[0].tags.at(0).second == "One");
        REQUIRE(info->cover);
        CHECK(info->cover->mime_type == "image/png");
        CHECK(polymux::testing::as_text(info->cover->data) == polymux::testing::read_file(picture));
        bool titled = false;
        for (const auto& [key, value] : info->tags) titled |= key == "title" && value == "Naïve";
        CHECK(titled);
    }

    TEST_CASE("limits refuse before work is done") {
        const TemporaryFolder folder;
        const std::string path = folder.file("a.mka");
        make_media(path, {"-f", "lavfi", "-i", "sine=duration=20", "-map", "0", "-map", "0",
                          "-metadata", "comment=0123456789"});
        for (const auto& [limits, word] : std::vector<std::pair<Limits, std::string>>{
                 {{.streams = 1}, "streams"}, {{.tag_bytes = 10}, "tag_bytes"}}) {
            const auto info = probe_file(path, limits);
            REQUIRE_FALSE(info);
            CHECK(info.error().code == ErrorCode::limit_exceeded);
            CHECK(info.error().message.find(word) != std::string::npos);
        }
        for (const auto& [limits, word] : std::vector<std::pair<Limits, std::string>>{
                 {{.duration_s = 19}, "duration_s"},
                 {{.sample_rate_hz = 44'000}, "sample_rate_hz"}}) {
            auto source = open_file(path);
            REQUIRE(source);
            const auto report = decode_pcm(**source, [](std::span<const float>) { return true; },
                                           {.limits = limits});
            REQUIRE_FALSE(report);
            CHECK(report.error().code == ErrorCode::limit_exceeded);
            CHECK(report.error().message.find(word) != std::string::npos);
        }
    }

    TEST_CASE("decoded samples equal those of the ffmpeg program") {
        const TemporaryFolder folder;
        const std::string path = folder.file("a.flac");
        make_media(path, {"-f", "lavfi", "-i", "sine=duration=1:sample_rate=44100", "-ac", "2"});
        const std::string raw = folder.file("a.f32");
        make_media(raw, {"-i", path, "-f", "f32le", "-ar", "16000", "-ac", "1"});
        std::string ours;
        auto source = open_file(path);
        REQUIRE(source);
        const auto report = decode_pcm(**source, [&ours](std::span<const float> samples) {
            ours += polymux::testing::as_text(std::as_bytes(samples));
            return true;
        });
        REQUIRE(report);
        CHECK(report->samples == 16'000);
        CHECK(ours == polymux::testing::read_file(raw));
    }

    TEST_CASE("a source that fails at any read returns its own failure") {
        const TemporaryFolder folder;
        const std::string path = folder.file("a.ogg");
        make_media(path, {"-f", "lavfi", "-i", "anoisesrc=duration=5", "-c:a", "libvorbis"});
        bool succeeded = false;
        int failures = 0;
        for (int good_reads = 0; !succeeded && good_reads < 50; ++good_reads) {
            auto file = open_file(path);
            REQUIRE(file);
            FailingSource source(**file, good_reads);
            const auto report = decode_pcm(source, [](std::span<const float>) { return true; });
            succeeded = report.has_value();
            if (succeeded) break;
            ++failures;
            CHECK(report.error().code == ErrorCode::callback_failed);
            CHECK(report.error().message == "planted");
        }
        CHECK(succeeded);
        CHECK(failures > 0);
    }

    TEST_CASE("at a rate of one hertz, memory does not grow with the output samples") {
        // 2,000 samples in one packet of half an hour: 96 million at the output's rate.
        std::string wave = "RIFF";
        const auto put = [&wave](std::uint32_t value, int bytes) {
            for (; bytes > 0; --bytes, value >>= 8U) wave += static_cast<char>(value & 0xFFU);
        };
        constexpr std::uint32_t data_bytes = 4000;
        put(36 + data_bytes, 4);
        wave += "WAVEfmt ";
        put(16, 4);
        put(1, 2);  // PCM
        put(1, 2);  // one channel
        put(1, 4);  // one sample a second
        put(2, 4);
        put(2, 2);
        put(16, 2);
        wave += "data";
        put(data_bytes, 4);
        for (std::uint32_t index = 0; index < data_bytes / 2; ++index)
            put(index * 7919U & 0x7FFFU, 2);
#if SANITIZED
        // AddressSanitizer keeps freed memory, ThreadSanitizer the last accesses of each byte.
        constexpr std::int64_t max_memory_bytes = std::int64_t{768} << 20U;
#else
        constexpr std::int64_t max_memory_bytes = std::int64_t{64} << 20U;
#endif
        const std::int64_t before_bytes = peak_memory_bytes();
        const auto source = memory_source(as_bytes(wave), "slow.wav");
        std::int64_t samples = 0;
        const auto report = decode_pcm(*source,
                                       [&samples](std::span<const float> block) {
                                           samples += static_cast<std::int64_t>(block.size());
                                           return samples < 4'000'000;
                                       },
                                       {.sample_rate_hz = 48'000});
        CHECK(samples >= 4'000'000);
        CHECK(peak_memory_bytes() - before_bytes < max_memory_bytes);
    }

    TEST_CASE("sample formats, rates and layouts follow ffmpeg's choice") {
        CHECK(nearest_sample_format(AV_SAMPLE_FMT_U8) == mp3::SampleFormat::s16);
        CHECK(nearest_sample_format(AV_SAMPLE_FMT_S16) == mp3::SampleFormat::s16);
        CHECK(nearest_sample_format(AV_SAMPLE_FMT_S32) == mp3::SampleFormat::s32);
        CHECK(nearest_sample_format(AV_SAMPLE_FMT_FLT) == mp3::SampleFormat::f32);
        for (const AVSampleFormat wide :
             {AV_SAMPLE_FMT_DBL, AV_SAMPLE_FMT_DBLP, AV_SAMPLE_FMT_S64}) {
            CHECK(nearest_sample_format(wide) == mp3::SampleFormat::f32);
        }
        CHECK(nearest_sample_rate(44'100) == 44'100);
        CHECK(nearest_sample_rate(96'000) == 48'000);
        CHECK(nearest_sample_rate(192'000) == 48'000);
        CHECK(nearest_sample_rate(7'000) == 8'000);
        CHECK(nearest_sample_rate(37'000) == 32'000);
        CHECK(nearest_layout(layout("mono")).channels() == 1);
        for (const char* name : {"stereo", "2.1", "5.1", "5.1(side)", "7.1", "quad"}) {
            CHECK_MESSAGE(nearest_layout(layout(name)).channels() == 2, name);
        }
        // As in ffmpeg: a "downmix" pair has no position in common with either.
        CHECK(nearest_layout(layout("downmix")).channels() == 1);
        CHECK(accepted_decoders().find("aac") != std::string::npos);
        CHECK(accepted_decoders().find("h264") == std::string::npos);
        CHECK(accepted_decoders().find("png") == std::string::npos);
    }
}
