#include "polymux/media/mp3/frame.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace polymux::media::mp3 {

namespace {

constexpr std::array<int, 14> mpeg1_bitrates_bps = {32'000,  40'000,  48'000,  56'000,  64'000,
                                                    80'000,  96'000,  112'000, 128'000, 160'000,
                                                    192'000, 224'000, 256'000, 320'000};
constexpr std::array<int, 14> mpeg2_bitrates_bps = {8'000,   16'000,  24'000,  32'000, 40'000,
                                                    48'000,  56'000,  64'000,  80'000, 96'000,
                                                    112'000, 128'000, 144'000, 160'000};

// LAME encodes MPEG 2.5 at up to 64 kbit/s only, although the header can say more.
constexpr std::size_t mpeg25_encoder_bitrates = 8;

// Three per version, in the order of the header's index: 44.1, 48, 32 kHz and their fractions.
constexpr std::array<int, 9> rates_hz = {44'100, 48'000, 32'000, 22'050, 24'000,
                                         16'000, 11'025, 12'000, 8'000};

unsigned byte_at(std::span<const std::byte> bytes, std::size_t index) {
    return std::to_integer<unsigned>(bytes[index]);
}

// Reads big-endian bit fields; bits past the end are zero.
class BitReader {
public:
    explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    int read(int bits) {
        int value = 0;
        for (int i = 0; i < bits; ++i, ++position_) {
            const std::size_t index = position_ / 8;
            const unsigned byte = index < bytes_.size() ? byte_at(bytes_, index) : 0;
            value = value * 2 + static_cast<int>((byte >> (7 - position_ % 8)) & 1);
        }
        return value;
    }

    void skip(std::size_t bits) { position_ += bits; }

private:
    std::span<const std::byte> bytes_;
    std::size_t position_ = 0;
};

std::optional<MpegVersion> version_from_bits(unsigned bits) {
    switch (bits) {
        case 0:
            return MpegVersion::mpeg25;
        case 2:
            return MpegVersion::mpeg2;
        case 3:
            return MpegVersion::mpeg1;
        default:
            return std::nullopt;
    }
}

}  // namespace

int FrameHeader::side_info_bytes() const noexcept {
    if (version == MpegVersion::mpeg1) return channels() == 1 ? 17 : 32;
    return channels() == 1 ? 9 : 17;
}

std::span<const int> bitrates(MpegVersion version) noexcept {
    if (version == MpegVersion::mpeg1) return mpeg1_bitrates_bps;
    return mpeg2_bitrates_bps;
}

std::span<const int> sample_rates() noexcept {
    return rates_hz;
}

std::optional<MpegVersion> version_of(int sample_rate_hz) noexcept {
    for (std::size_t i = 0; i < rates_hz.size(); ++i) {
        if (rates_hz[i] == sample_rate_hz) return static_cast<MpegVersion>(i / 3);
    }
    return std::nullopt;
}

int nearest_bitrate(int bitrate_bps, int sample_rate_hz) noexcept {
    const auto version = version_of(sample_rate_hz);
    if (!version) return 0;
    auto choices = bitrates(*version);
    if (*version == MpegVersion::mpeg25) choices = choices.first(mpeg25_encoder_bitrates);

    // LAME accepts whole kilobits. It selects the lower one of two equally near rates.
    const int wanted_kbps = bitrate_bps / 1000;
    int best = choices.front();
    for (const int choice : choices) {
        if (std::abs(choice / 1000 - wanted_kbps) < std::abs(best / 1000 - wanted_kbps)) {
            best = choice;
        }
    }
    return best;
}

std::optional<FrameHeader> parse_header(std::span<const std::byte> bytes) noexcept {
    if (bytes.size() < frame_header_bytes) return std::nullopt;
    const unsigned second = byte_at(bytes, 1);
    const unsigned third = byte_at(bytes, 2);
    const unsigned fourth = byte_at(bytes, 3);
    const bool is_sync = byte_at(bytes, 0) == 0xFF && (second & 0xE0) == 0xE0;
    const bool is_layer3 = ((second >> 1) & 3) == 1;
    const auto version = version_from_bits((second >> 3) & 3);
    const unsigned bitrate_index = third >> 4;
    const unsigned rate_index = (third >> 2) & 3;
    if (!is_sync || !is_layer3 || !version) return std::nullopt;
    if (bitrate_index == 0 || bitrate_index == 15 || rate_index == 3) return std::nullopt;

    FrameHeader header;
    header.version = *version;
    header.channel_mode = static_cast<ChannelMode>(fourth >> 6);
    header.crc_protected = (second & 1) == 0;
    header.padding = ((third >> 1) & 1) != 0;
    header.bitrate_bps = bitrates(*version)[bitrate_index - 1];
    header.sample_rate_hz = rates_hz[static_cast<std::size_t>(*version) * 3 + rate_index];
    header.frame_bytes = header.samples() / 8 * header.bitrate_bps / header.sample_rate_hz +
                         (header.padding ? 1 : 0);
    header.mode_extension = static_cast<int>((fourth >> 4) & 3);
    return header;
}

std::optional<SideInfo> parse_side_info(const FrameHeader& header,
                                        std::span<const std::byte> frame) noexcept {
    const std::size_t start = frame_header_bytes + (header.crc_protected ? 2 : 0);
    const auto length = static_cast<std::size_t>(header.side_info_bytes());
    if (frame.size() < start + length) return std::nullopt;

    const bool is_mpeg1 = header.version == MpegVersion::mpeg1;
    const int channels = header.channels();
    BitReader bits(frame.subspan(start, length));
    SideInfo info;
    info.main_data_begin_bytes = bits.read(is_mpeg1 ? 9 : 8);
    // Private bits, then in MPEG 1 four bits of scale factor selection per channel.
    if (is_mpeg1) {
        bits.skip(channels == 1 ? 5 + 4 : 3 + 8);
    } else {
        bits.skip(channels == 1 ? 1 : 2);
    }
    constexpr std::size_t length_bits = 12;  // part2_3_length comes first
    const std::size_t block_bits = is_mpeg1 ? 59 : 63;
    for (int granule = 0; granule < header.granules(); ++granule) {
        for (int channel = 0; channel < channels; ++channel) {
            info.main_data_bits += bits.read(length_bits);
            bits.skip(block_bits - length_bits);
        }
    }
    return info;
}

}  // namespace polymux::media::mp3
