#include <doctest/doctest.h>

#include <array>
#include <random>

#include "mp3_programs.hpp"
#include "polymux/media/mp3/frame.hpp"

using namespace polymux::media::mp3;
using namespace polymux::testing;

namespace {

Bytes header_of(unsigned second, unsigned third, unsigned fourth) {
    return {std::byte{0xFF}, static_cast<std::byte>(second), static_cast<std::byte>(third),
            static_cast<std::byte>(fourth)};
}

}  // namespace

TEST_CASE("a header of each version has its rate, bitrate, size and side information") {
    struct Row {
        unsigned second, third, fourth;
        MpegVersion version;
        int bitrate_bps, sample_rate_hz, frame_bytes, samples, side_info_bytes;
    };
    const std::array rows = {
        Row{0xFB, 0x90, 0x64, MpegVersion::mpeg1, 128'000, 44'100, 417, 1152, 32},
        Row{0xFB, 0x92, 0x64, MpegVersion::mpeg1, 128'000, 44'100, 418, 1152, 32},
        Row{0xFB, 0xE8, 0xC4, MpegVersion::mpeg1, 320'000, 32'000, 1440, 1152, 17},
        Row{0xF3, 0x84, 0x00, MpegVersion::mpeg2, 64'000, 24'000, 192, 576, 17},
        Row{0xE3, 0x18, 0xC0, MpegVersion::mpeg25, 8'000, 8'000, 72, 576, 9},
    };
    for (const Row& row : rows) {
        const auto header = parse_header(header_of(row.second, row.third, row.fourth));
        REQUIRE(header.has_value());
        CHECK(header->version == row.version);
        CHECK(header->bitrate_bps == row.bitrate_bps);
        CHECK(header->sample_rate_hz == row.sample_rate_hz);
        CHECK(header->frame_bytes == row.frame_bytes);
        CHECK(header->samples() == row.samples);
        CHECK(header->side_info_bytes() == row.side_info_bytes);
        CHECK_FALSE(header->crc_protected);
    }
    CHECK(parse_header(header_of(0xFA, 0x90, 0x64))->crc_protected);
    CHECK(parse_header(header_of(0xFB, 0x90, 0x64))->channel_mode == ChannelMode::joint_stereo);
    CHECK(parse_header(header_of(0xFB, 0x90, 0x64))->mode_extension == 2);
}

TEST_CASE("an invalid layer III header is refused") {
    const std::array broken = {
        header_of(0x7B, 0x90, 0x64),  // no sync
        header_of(0xFD, 0x90, 0x64),  // layer II
        header_of(0xF9, 0x90, 0x64),  // reserved layer
        header_of(0xEB, 0x90, 0x64),  // reserved version
        header_of(0xFB, 0x00, 0x64),  // free format
        header_of(0xFB, 0xF0, 0x64),  // reserved bitrate
        header_of(0xFB, 0x9C, 0x64),  // reserved sample rate
    };
    for (const auto& bytes : broken) CHECK_FALSE(parse_header(bytes).has_value());
    const Bytes whole = header_of(0xFB, 0x90, 0x64);
    for (std::size_t length = 0; length < 4; ++length) {
        CHECK_FALSE(parse_header(std::span(whole).first(length)).has_value());
    }
}

TEST_CASE("nearest_bitrate chooses as ffmpeg does") {
    struct Row {
        int asked_bps, at_8k, at_16k, at_44k;
    };
    // Read from the headers of files that ffmpeg 5.1 made with each -b:a and -ar.
    const std::array rows = {
        Row{8'000, 8'000, 8'000, 32'000},       Row{20'000, 16'000, 16'000, 32'000},
        Row{36'000, 32'000, 32'000, 32'000},    Row{44'000, 40'000, 40'000, 40'000},
        Row{60'000, 56'000, 56'000, 56'000},    Row{72'000, 64'000, 64'000, 64'000},
        Row{88'000, 64'000, 80'000, 80'000},    Row{100'000, 64'000, 96'000, 96'000},
        Row{150'000, 64'000, 144'000, 160'000}, Row{200'000, 64'000, 160'000, 192'000},
        Row{240'500, 64'000, 160'000, 224'000}, Row{288'000, 64'000, 160'000, 256'000},
        Row{320'000, 64'000, 160'000, 320'000}, Row{400'000, 64'000, 160'000, 320'000},
    };
    for (const Row& row : rows) {
        CHECK(nearest_bitrate(row.asked_bps, 8'000) == row.at_8k);
        CHECK(nearest_bitrate(row.asked_bps, 16'000) == row.at_16k);
        CHECK(nearest_bitrate(row.asked_bps, 44'100) == row.at_44k);
    }
    CHECK(nearest_bitrate(128'000, 44'000) == 0);
    for (const int rate_hz : sample_rates()) {
        for (const int bitrate_bps : bitrates(*version_of(rate_hz))) {
            const bool is_encodable = rate_hz >= 16'000 || bitrate_bps <= 64'000;
            CHECK(nearest_bitrate(bitrate_bps, rate_hz) == (is_encodable ? bitrate_bps : 64'000));
        }
    }
}

TEST_CASE("nearest_bitrate agrees with the installed ffmpeg") {
    const TemporaryFolder folder;
    for (const int rate_hz : sample_rates()) {
        for (const int asked_bps : {13'000, 90'999, 272'000}) {
            const auto path = folder.file("odd.mp3");
            encode_clip({rate_hz, 1, rate_hz / 10,
                         "-write_xing 0 -id3v2_version 0 -b:a " + std::to_string(asked_bps)},
                        path);
            const auto header = parse_header(bytes_of(read_file(path)));
            REQUIRE(header.has_value());
            CHECK(header->bitrate_bps == nearest_bitrate(asked_bps, rate_hz));
        }
    }
}

TEST_CASE("sample rates belong to one version each") {
    CHECK(sample_rates().size() == 9);
    CHECK(version_of(48'000) == MpegVersion::mpeg1);
    CHECK(version_of(16'000) == MpegVersion::mpeg2);
    CHECK(version_of(12'000) == MpegVersion::mpeg25);
    CHECK_FALSE(version_of(96'000).has_value());
    CHECK(bitrates(MpegVersion::mpeg1).size() == 14);
    CHECK(bitrates(MpegVersion::mpeg25).size() == 14);
}

TEST_CASE("side information of real streams fits their bit reservoir") {
    const TemporaryFolder folder;
    const std::array clips = {
        Clip{44'100, 2, 88'200, "-b:a 128k"},
        Clip{44'100, 1, 88'200, "-q:a 4"},
        Clip{22'050, 2, 44'100, "-b:a 64k"},
        Clip{8'000, 1, 16'000, "-b:a 16k"},
    };
    for (auto clip : clips) {
        clip.arguments += " -write_xing 0 -id3v2_version 0";
        const auto path = folder.file("clip.mp3");
        encode_clip(clip, path);
        int reservoir_bytes = 0;
        int borrowed_frames = 0;
        for (const auto& frame : split_frames(bytes_of(read_file(path)))) {
            const auto header = parse_header(frame);
            const auto info = parse_side_info(*header, frame);
            REQUIRE(info.has_value());
            const int own_bytes = header->frame_bytes - 4 - header->side_info_bytes();
            CHECK(info->main_data_begin_bytes <= reservoir_bytes);
            CHECK(info->main_data_bits <= 8 * (info->main_data_begin_bytes + own_bytes));
            borrowed_frames += info->main_data_begin_bytes > 0 ? 1 : 0;
            const int used_bytes = (info->main_data_bits + 7) / 8;
            reservoir_bytes = info->main_data_begin_bytes + own_bytes - used_bytes;
        }
        CHECK(borrowed_frames > 0);
    }
}

TEST_CASE("truncated side information is refused") {
    const auto header = parse_header(header_of(0xFB, 0x90, 0x64));
    REQUIRE(header.has_value());
    const Bytes frame(417);
    CHECK(parse_side_info(*header, std::span(frame).first(36)).has_value());
    CHECK_FALSE(parse_side_info(*header, std::span(frame).first(35)).has_value());
    auto with_crc = *header;
    with_crc.crc_protected = true;
    CHECK_FALSE(parse_side_info(with_crc, std::span(frame).first(37)).has_value());
    CHECK(parse_side_info(with_crc, std::span(frame).first(38)).has_value());
}

TEST_CASE("random bytes are refused or give values within the format's limits") {
    std::mt19937 random(20'260'101);
    std::uniform_int_distribution<unsigned> byte(0, 255);
    std::uniform_int_distribution<std::size_t> length(0, 64);
    int accepted = 0;
    for (int run = 0; run < 200'000; ++run) {
        Bytes bytes(length(random));
        for (auto& value : bytes) value = static_cast<std::byte>(byte(random));
        if (bytes.size() > 1 && run % 2 == 0) {
            bytes[0] = std::byte{0xFF};
            bytes[1] |= std::byte{0xE0};
        }
        const auto header = parse_header(bytes);
        if (!header) continue;
        ++accepted;
        REQUIRE(header->frame_bytes >= 24);
        REQUIRE(header->frame_bytes <= 1441);
        REQUIRE(version_of(header->sample_rate_hz) == header->version);
        const auto info = parse_side_info(*header, bytes);
        if (!info) continue;
        REQUIRE(info->main_data_begin_bytes <= 511);
        REQUIRE(info->main_data_bits <= 4 * 4095);
    }
    CHECK(accepted > 1'000);
}
