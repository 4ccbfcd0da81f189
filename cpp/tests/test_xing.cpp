#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>

#include "mp3_programs.hpp"
#include "polymux/media/mp3/xing.hpp"

using namespace polymux::media::mp3;
using namespace polymux::testing;

namespace {

XingSettings settings_for(const Clip& clip, int bitrate_bps) {
    XingSettings settings;
    settings.sample_rate_hz = clip.sample_rate_hz;
    settings.channels = clip.channels;
    settings.bitrate_bps = bitrate_bps;
    return settings;
}

// Position of the nine bytes of encoder name after "Xing".
std::string encoder_of(std::span<const std::byte> frame) {
    const auto header = parse_header(frame);
    REQUIRE(header.has_value());
    const auto at = static_cast<std::size_t>(4 + header->side_info_bytes() + 120);
    return as_text(frame.subspan(at, 9));
}

std::uint64_t number_at(std::span<const std::byte> bytes, std::size_t at, std::size_t width) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
        value = value << 8 | std::to_integer<std::uint64_t>(bytes[at + i]);
    }
    return value;
}

// The part from "Xing" or "Info" on.
std::span<const std::byte> tag_of(std::span<const std::byte> frame) {
    return frame.subspan(static_cast<std::size_t>(4 + parse_header(frame)->side_info_bytes()));
}

// Encodes with the ffmpeg program and makes its Xing frame again from the audio frames.
void check_same_as_ffmpeg(const std::string& path, const Clip& clip, int bitrate_bps) {
    INFO(clip.arguments, " ", clip.sample_rate_hz, " Hz ", clip.samples, " samples");
    Clip bare = clip;
    bare.arguments += " -id3v2_version 0";
    encode_clip(bare, path);
    const auto frames = split_frames(bytes_of(read_file(path)));
    REQUIRE(frames.size() > 1);

    auto settings = settings_for(clip, bitrate_bps);
    settings.as_ffmpeg = true;
    settings.encoder = encoder_of(frames.front());
    CHECK(settings.encoder.starts_with("Lavc"));
    XingFrame xing(settings);
    for (std::size_t i = 1; i < frames.size(); ++i) xing.add_frame(frames[i]);
    CHECK(xing.placeholder().size() == frames.front().size());
    CHECK(as_text(xing.finish(clip.samples)) == as_text(frames.front()));
}

Bytes audio_of(const std::string& path, Clip clip) {
    clip.arguments += " -id3v2_version 0 -write_xing 0";
    encode_clip(clip, path);
    return bytes_of(read_file(path));
}

}  // namespace

TEST_CASE("crc16 is CRC-16/ARC") {
    const Bytes digits = bytes_of("123456789");
    CHECK(crc16(digits) == 0xBB3D);
    CHECK(crc16(std::span(digits).subspan(4), crc16(std::span(digits).first(4))) == 0xBB3D);
    CHECK(crc16({}) == 0);
}

TEST_CASE("as_ffmpeg gives ffmpeg's frame for every rate control") {
    struct Row {
        Clip clip;
        int bitrate_bps;
    };
    const std::array rows = {
        Row{{44'100, 2, 66'150, "-b:a 128k"}, 128'000},
        Row{{44'100, 2, 66'150, "-b:a 320k"}, 320'000},
        Row{{44'100, 2, 66'150, "-b:a 32k"}, 32'000},
        Row{{44'100, 2, 66'150, "-b:a 100k"}, 100'000},
        Row{{48'000, 2, 72'000, "-b:a 192k"}, 192'000},
        Row{{32'000, 2, 48'000, "-b:a 40k"}, 40'000},
        Row{{44'100, 1, 66'150, "-b:a 64k"}, 64'000},
        Row{{22'050, 2, 33'075, "-b:a 56k"}, 56'000},
        Row{{24'000, 1, 36'000, "-b:a 8k"}, 8'000},
        Row{{11'025, 1, 16'537, "-b:a 160k"}, 160'000},
        Row{{8'000, 1, 12'000, "-b:a 8k"}, 8'000},
        Row{{8'000, 2, 12'000, "-b:a 64k"}, 64'000},
        Row{{44'100, 2, 66'150, "-q:a 0"}, 0},
        Row{{48'000, 1, 72'000, "-q:a 4"}, 0},
        Row{{24'000, 2, 36'000, "-q:a 9"}, 0},
        Row{{44'100, 2, 66'150, "-abr 1 -b:a 128k"}, 128'000},
    };
    const TemporaryFolder folder;
    for (const Row& row : rows) {
        check_same_as_ffmpeg(folder.file("clip.mp3"), row.clip, row.bitrate_bps);
    }
}

TEST_CASE("as_ffmpeg gives ffmpeg's seek table of long streams") {
    const TemporaryFolder folder;
    // The table is thinned out at 400, 800 and 1600 frames.
    for (const int frames : {398, 399, 400, 401, 1'700}) {
        const Clip clip{16'000, 1, frames * 576 - 1'105, "-q:a 5"};
        check_same_as_ffmpeg(folder.file("clip.mp3"), clip, 0);
    }
}

TEST_CASE("as_ffmpeg gives ffmpeg's padding wherever the audio ends in a frame") {
    const TemporaryFolder folder;
    for (int samples = 4'000; samples < 4'000 + 1'152; samples += 46) {
        check_same_as_ffmpeg(folder.file("a.mp3"), {44'100, 1, samples, "-b:a 64k"}, 64'000);
    }
    for (int samples = 4'000; samples < 4'000 + 576; samples += 46) {
        check_same_as_ffmpeg(folder.file("b.mp3"), {22'050, 1, samples, "-b:a 64k"}, 64'000);
    }
    check_same_as_ffmpeg(folder.file("c.mp3"), {44'100, 2, 1, "-b:a 128k"}, 128'000);
}

TEST_CASE("as_ffmpeg carries replay gain as ffmpeg does") {
    const TemporaryFolder folder;
    struct Row {
        const char* track_gain;
        const char* track_peak;
        const char* album_gain;
        ReplayGain expected;
    };
    const std::array rows = {
        Row{"-6.50 dB", "0.98765", "+3.29 dB", {-650'000, 329'000, 98'765}},
        Row{"60.1 dB", "1.2", nullptr, {6'010'000, {}, 120'000}},
        Row{"-0.04 dB", nullptr, "-12 dB", {-4'000, -1'200'000, 0}},
    };
    for (const Row& row : rows) {
        std::string tags;
        const auto add = [&tags](const std::string& name, const char* value) {
            if (value != nullptr) tags += " -metadata REPLAYGAIN_" + name + "='" + value + "'";
        };
        add("TRACK_GAIN", row.track_gain);
        add("TRACK_PEAK", row.track_peak);
        add("ALBUM_GAIN", row.album_gain);
        const auto source = folder.file("source.flac");
        const auto path = folder.file("clip.mp3");
        ffmpeg("-f lavfi -i sine=r=44100:d=1" + tags + " '" + source + "'");
        ffmpeg("-i '" + source + "' -id3v2_version 0 -b:a 64k '" + path + "'");
        const auto frames = split_frames(bytes_of(read_file(path)));
        XingSettings settings;
        settings.channels = 1;
        settings.bitrate_bps = 64'000;
        settings.as_ffmpeg = true;
        settings.encoder = encoder_of(frames.front());
        settings.replay_gain = row.expected;
        XingFrame xing(settings);
        for (std::size_t i = 1; i < frames.size(); ++i) xing.add_frame(frames[i]);
        CHECK(as_text(xing.finish(44'100)) == as_text(frames.front()));
    }
}

TEST_CASE("the standard frame states what LAME's tag defines") {
    const TemporaryFolder folder;
    const Clip clip{44'100, 2, 441'000, "-q:a 2"};
    const auto frames = split_frames(audio_of(folder.file("clip.mp3"), clip));
    auto settings = settings_for(clip, 0);
    settings.vbr_method = 4;
    settings.vbr_scale = 80;
    settings.lowpass_hz = 18'500;
    settings.tag_flags = 0x14;
    settings.noise_shaping = 1;
    settings.source_rate_hz = 96'000;
    XingFrame xing(settings);
    CHECK(xing.placeholder().size() == 208);
    std::int64_t audio_bytes = 0;
    Bytes audio;
    for (const auto& frame : frames) {
        xing.add_frame(frame);
        audio_bytes += static_cast<std::int64_t>(frame.size());
        audio.insert(audio.end(), frame.begin(), frame.end());
    }
    CHECK(xing.frames() == static_cast<std::int64_t>(frames.size()));
    CHECK(xing.audio_bytes() == audio_bytes);

    const Bytes frame = xing.finish(clip.samples);
    REQUIRE(frame.size() == 208);
    CHECK(parse_header(frame)->channel_mode == ChannelMode::joint_stereo);
    const auto tag = tag_of(frame);
    const std::uint64_t total = audio.size() + frame.size();
    CHECK(as_text(tag.first(4)) == "Xing");
    CHECK(number_at(tag, 4, 4) == 0x0F);
    CHECK(number_at(tag, 8, 4) == frames.size());
    CHECK(number_at(tag, 12, 4) == total);
    CHECK(number_at(tag, 116, 4) == 80);
    CHECK(as_text(tag.subspan(120, 9)) == "LAME3.100");
    CHECK(number_at(tag, 129, 1) == 0x04);
    CHECK(number_at(tag, 130, 1) == 185);
    CHECK(number_at(tag, 139, 1) == 0x14);
    CHECK(number_at(tag, 140, 1) == 32);
    const std::uint64_t padding = frames.size() * 1'152 - 576 - 441'000;
    CHECK(number_at(tag, 141, 3) == (576 << 12 | padding));
    CHECK(number_at(tag, 144, 1) == (1 | 3 << 2 | 3 << 6));
    CHECK(number_at(tag, 146, 2) == 480);
    CHECK(number_at(tag, 148, 4) == total);
    CHECK(number_at(tag, 152, 2) == crc16(audio));
    CHECK(number_at(tag, 154, 2) == crc16(std::span(frame).first(190)));
}

TEST_CASE("the standard seek table points to the frames of each percent") {
    const TemporaryFolder folder;
    for (const int seconds : {8, 70}) {
        const Clip clip{16'000, 1, seconds * 16'000, "-q:a 3"};
        const auto frames = split_frames(audio_of(folder.file("clip.mp3"), clip));
        XingFrame xing(settings_for(clip, 0));
        std::vector<std::uint64_t> starts;
        std::uint64_t position = xing.placeholder().size();
        for (const auto& frame : frames) {
            xing.add_frame(frame);
            starts.push_back(position);
            position += frame.size();
        }
        const Bytes frame = xing.finish(clip.samples);
        const auto tag = tag_of(frame);
        CHECK(number_at(tag, 16, 1) == 0);
        for (std::size_t i = 1; i < 100; ++i) {
            const auto exact = static_cast<double>(starts[i * frames.size() / 100]) * 256 /
                               static_cast<double>(position);
            // Below 400 frames each position is known; above, they are interpolated.
            const double tolerance = frames.size() < 400 ? 1.0 : 2.0;
            const auto stated = static_cast<double>(number_at(tag, 16 + i, 1));
            CHECK(stated <= exact + tolerance - 1.0);
            CHECK(stated > exact - tolerance);
            CHECK(number_at(tag, 16 + i, 1) >= number_at(tag, 15 + i, 1));
        }
    }
}

TEST_CASE("ffmpeg and mpg123 play exactly the input samples") {
    const TemporaryFolder folder;
    const std::array clips = {
        Clip{44'100, 2, 50'000, "-b:a 128k"},
        Clip{44'100, 1, 44'101, "-q:a 2"},
        Clip{22'050, 2, 30'000, "-b:a 64k"},
        Clip{8'000, 1, 9'000, "-b:a 8k"},
    };
    for (const Clip& clip : clips) {
        const Bytes audio = audio_of(folder.file("bare.mp3"), clip);
        auto settings = settings_for(clip, parse_header(audio)->bitrate_bps);
        settings.vbr_method = 1;
        XingFrame xing(settings);
        for (const auto& frame : split_frames(audio)) xing.add_frame(frame);
        Bytes whole = xing.finish(clip.samples);
        whole.insert(whole.end(), audio.begin(), audio.end());
        const auto path = folder.file("tagged.mp3");
        write_file(path, as_text(whole));
        const auto expected = static_cast<std::size_t>(clip.samples * clip.channels * 2);
        CHECK(output_of("mpg123 -q -s --gapless '" + path + "'").size() == expected);
        CHECK(ffmpeg("-i '" + path + "' -f s16le -").size() == expected);
    }
}

TEST_CASE("CBR uses Info, VBR uses Xing, and a varying stream is never marked constant") {
    const auto name = [](int method, bool varies) {
        XingSettings settings;
        settings.bitrate_bps = 128'000;
        settings.vbr_method = method;
        XingFrame xing(settings);
        Bytes frame(417);
        frame[0] = std::byte{0xFF};
        frame[1] = std::byte{0xFB};
        frame[2] = std::byte{0x90};
        xing.add_frame(frame);
        if (varies) frame[2] = std::byte{0xA0};
        xing.add_frame(frame);
        const Bytes result = xing.finish(1'000);
        return as_text(tag_of(result).first(4));
    };
    CHECK(name(1, false) == "Info");
    CHECK(name(0, false) == "Info");
    CHECK(name(1, true) == "Xing");
    CHECK(name(2, false) == "Xing");
    CHECK(name(4, false) == "Xing");
}

TEST_CASE("every legal bitrate and rate has room for the frame") {
    for (const int rate_hz : sample_rates()) {
        for (const int bitrate_bps : bitrates(*version_of(rate_hz))) {
            for (const int channels : {1, 2}) {
                XingSettings settings;
                settings.sample_rate_hz = rate_hz;
                settings.channels = channels;
                settings.bitrate_bps = bitrate_bps;
                const XingFrame xing(settings);
                const Bytes empty = xing.placeholder();
                const auto header = parse_header(empty);
                REQUIRE(header.has_value());
                CHECK(header->sample_rate_hz == rate_hz);
                CHECK(header->channels() == channels);
                CHECK(static_cast<std::size_t>(header->frame_bytes) == empty.size());
                CHECK(header->bitrate_bps >= bitrate_bps);
                CHECK(xing.finish(0).size() == empty.size());
            }
        }
    }
}

TEST_CASE("invalid MPEG settings give no frame, unusual values stay in their fields") {
    XingSettings settings;
    settings.sample_rate_hz = 44'000;
    XingFrame none(settings);
    none.add_frame(Bytes(4));
    CHECK(none.placeholder().empty());
    CHECK(none.finish(100).empty());

    settings.sample_rate_hz = 44'100;
    settings.encoder = "an encoder with a long name";
    settings.encoder_delay = 1'000'000;
    settings.lowpass_hz = -5;
    settings.vbr_scale = -7;
    settings.vbr_method = 0x7FFF'FFFF;
    settings.bitrate_bps = -1;
    XingFrame odd(settings);
    std::mt19937 random(7);
    for (int i = 0; i < 2'000; ++i) {
        Bytes frame(random() % 700);
        for (auto& byte : frame) byte = static_cast<std::byte>(random() & 0xFF);
        odd.add_frame(frame);
    }
    for (const std::int64_t samples : {INT64_C(-9'000'000'000), INT64_C(0), INT64_C(1) << 60}) {
        const Bytes frame = odd.finish(samples);
        REQUIRE(parse_header(frame).has_value());
        CHECK(as_text(tag_of(frame).subspan(120, 9)) == "an encode");
        CHECK(number_at(tag_of(frame), 141, 3) / 4'096 == 4'095);
    }
}
