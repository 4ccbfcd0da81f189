#include "media/mp3/reservoir.hpp"

#include <algorithm>

namespace polymux::media::mp3 {

namespace {

constexpr int highest_bitrate_index = 14;
// LAME's own bound below 16 kHz: 64 kbit/s.
constexpr int highest_bitrate_index_below_16_khz = 8;
// Bits that a decoder must be able to buffer for one granule.
constexpr int buffer_bits_per_granule = 7680;
// main_data_begin counts bytes in 9 bits (MPEG 1, two granules) or 8.
constexpr int pointer_values_per_granule = 256;

}  // namespace

int StreamShape::head_bytes() const noexcept {
    FrameHeader header;
    header.version = version;
    header.channel_mode = channels == 1 ? ChannelMode::mono : ChannelMode::joint_stereo;
    return static_cast<int>(frame_header_bytes) + header.side_info_bytes();
}

StreamShape shape_of(const EncoderSettings& settings) noexcept {
    return {.rate_control = settings.rate_control,
            .version = version_of(settings.sample_rate_hz).value_or(MpegVersion::mpeg1),
            .sample_rate_hz = settings.sample_rate_hz,
            .channels = settings.channels};
}

Reservoir::Reservoir(const StreamShape& shape)
    : shape_(shape),
      highest_index_(shape.sample_rate_hz < 16'000 ? highest_bitrate_index_below_16_khz
                                                   : highest_bitrate_index) {}

int Reservoir::frame_bits(FrameSize size) const noexcept {
    const int bitrate_bps = bitrates(shape_.version)[static_cast<std::size_t>(
        std::clamp(size.bitrate_index, 1, highest_bitrate_index) - 1)];
    return 8 * (shape_.frame_samples() / 8 * bitrate_bps / shape_.sample_rate_hz +
                (size.padding ? 1 : 0));
}

int Reservoir::payload_bits(FrameSize size) const noexcept {
    return frame_bits(size) - 8 * shape_.head_bytes();
}

int Reservoir::late_frames() const noexcept {
    // One waits for the samples of the next, one is partly filled, and one is a safety margin.
    constexpr int others = 3;
    const FrameSize smallest;
    return limit_bits(smallest) / payload_bits(smallest) + others;
}

int Reservoir::limit_bits(FrameSize size) const noexcept {
    const int pointer_limit = 8 * (pointer_values_per_granule * shape_.granules() - 1);
    const int buffer_limit = buffer_bits_per_granule * shape_.granules() - frame_bits(size);
    return std::max(0, std::min(pointer_limit, buffer_limit));
}

int Reservoir::available_bits(FrameSize size, int level_bits) const noexcept {
    const int available = payload_bits(size) + std::min(level_bits, limit_bits(size));
    return std::min(available, buffer_bits_per_granule * shape_.granules());
}

bool Reservoir::fits(FrameSize size, int bits) const noexcept {
    return bits <= available_bits(size, level_bits_);
}

int Reservoir::smallest_fitting(int bits) const noexcept {
    int index = 1;
    while (index < highest_index_ && !fits({.bitrate_index = index}, bits)) ++index;
    return index;
}

FrameSize Reservoir::choose(FrameSize own, int bits, bool silent) const noexcept {
    if (shape_.rate_control == RateControl::cbr) return own;
    const int smallest = smallest_fitting(bits);
    if (shape_.rate_control == RateControl::abr) return {.bitrate_index = smallest};
    // VBR: as large as the reservoir can hold the leftover bits, which lets later frames be small.
    const int keepable = silent ? 0 : limit_bits({.bitrate_index = highest_index_});
    if (keepable == 0) return {.bitrate_index = smallest};
    int index = highest_index_;
    for (; index > smallest; --index) {
        const FrameSize size{.bitrate_index = index};
        if (available_bits(size, level_bits_) - bits <= keepable) break;
    }
    return {.bitrate_index = index};
}

int Reservoir::level_after(FrameSize size, int bits) const noexcept {
    const int level = level_bits_ - bits + payload_bits(size);
    return std::min(level - level % 8, limit_bits(size));
}

Placement Reservoir::place(FrameSize size, int bits) noexcept {
    Placement placement;
    const int begin_bytes = level_bits_ / 8;
    const int after = level_after(size, bits);
    const int stuffing = level_bits_ - bits + payload_bits(size) - after;
    placement.stuffing_bytes_before = std::min(begin_bytes, stuffing / 8);
    placement.stuffing_bits_after = stuffing - 8 * placement.stuffing_bytes_before;
    placement.main_data_begin_bytes = begin_bytes - placement.stuffing_bytes_before;
    level_bits_ = after;
    return placement;
}

}  // namespace polymux::media::mp3
