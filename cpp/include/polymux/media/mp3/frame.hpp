// MPEG audio layer III frames: headers, side information, and splitting a byte stream.
// Source: ISO/IEC 11172-3 and 13818-3; MPEG 2.5 as Fraunhofer defined it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace polymux::media::mp3 {

enum class MpegVersion : std::uint8_t { mpeg1, mpeg2, mpeg25 };
enum class ChannelMode : std::uint8_t { stereo, joint_stereo, dual_channel, mono };

inline constexpr std::size_t frame_header_bytes = 4;

struct FrameHeader {
    MpegVersion version = MpegVersion::mpeg1;
    ChannelMode channel_mode = ChannelMode::stereo;
    bool crc_protected = false;
    bool padding = false;
    int bitrate_bps = 0;  ///< Never 0: free format is not supported.
    int sample_rate_hz = 0;
    int frame_bytes = 0;  ///< Whole frame, header included.
    int mode_extension = 0;

    [[nodiscard]] int channels() const noexcept {
        return channel_mode == ChannelMode::mono ? 1 : 2;
    }
    [[nodiscard]] int samples() const noexcept {
        return version == MpegVersion::mpeg1 ? 1152 : 576;
    }
    [[nodiscard]] int granules() const noexcept { return version == MpegVersion::mpeg1 ? 2 : 1; }
    /// Bytes of side information after the header (and the CRC, if any).
    [[nodiscard]] int side_info_bytes() const noexcept;
};

/// Parses the four bytes of a layer III header. Returns nothing if they are invalid.
[[nodiscard]] std::optional<FrameHeader> parse_header(std::span<const std::byte> bytes) noexcept;

/// `main_data_begin` and the sum of part2_3_length over granules and channels, in bits.
struct SideInfo {
    int main_data_begin_bytes = 0;
    int main_data_bits = 0;
};
[[nodiscard]] std::optional<SideInfo> parse_side_info(const FrameHeader& header,
                                                      std::span<const std::byte> frame) noexcept;

/// The 14 bitrates in bit/s of an MPEG version, ascending.
[[nodiscard]] std::span<const int> bitrates(MpegVersion version) noexcept;

/// The nine sample rates of MPEG 1, 2 and 2.5.
[[nodiscard]] std::span<const int> sample_rates() noexcept;
[[nodiscard]] std::optional<MpegVersion> version_of(int sample_rate_hz) noexcept;

/// The nearest legal bitrate of a constant-bitrate stream at `sample_rate_hz`, as LAME (and so
/// ffmpeg) chooses it.
[[nodiscard]] int nearest_bitrate(int bitrate_bps, int sample_rate_hz) noexcept;

}  // namespace polymux::media::mp3
