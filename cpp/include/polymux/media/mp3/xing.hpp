// The Xing/Info frame with LAME's extension: frame and byte counts, seek table, encoder delay and
// padding, CRCs. Source: the Xing VBR SDK's header and the "MP3 Info Tag" revision 1 by LAME.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "polymux/media/mp3/frame.hpp"

namespace polymux::media::mp3 {

/// Loudness of the source, in the units of FFmpeg's AVReplayGain.
struct ReplayGain {
    std::optional<std::int32_t> track_gain;  ///< 100,000 is one decibel.
    std::optional<std::int32_t> album_gain;
    std::uint32_t track_peak = 0;  ///< 100,000 is full scale; 0 unknown.
};

struct XingSettings {
    int sample_rate_hz = 44'100;
    int channels = 2;
    int bitrate_bps = 0;                ///< Requested constant or mean bitrate; 0 for VBR.
    std::string encoder = "LAME3.100";  ///< Up to nine bytes.
    int vbr_method = 0;                 ///< LAME's field: 1 CBR, 2 ABR, 4 VBR (mtrh); 0 unknown.
    int vbr_scale = 0;                  ///< 0 to 100, LAME's quality field.
    int lowpass_hz = 0;                 ///< 0 unknown.
    int tag_flags = 0;                  ///< LAME's encoding flags and ATH type, one byte.
    int noise_shaping = 0;              ///< LAME's field, 0 to 3.
    int encoder_delay = 576;            ///< Samples, below 4096.
    bool joint_stereo = true;
    int source_rate_hz = 0;                      ///< Rate of the input; 0 unknown.
    std::optional<ReplayGain> replay_gain = {};  ///< Stated by the source; none if unknown.
    bool as_ffmpeg = false;                      ///< Exactly the frame of ffmpeg's mp3 muxer.
};

/// Collects the data of the Xing/Info frame from the audio frames, then returns its bytes. Not
/// thread-safe. The frame's size is the same for `placeholder` and `finish`.
class XingFrame {
public:
    explicit XingFrame(const XingSettings& settings);

    /// Bytes to put before the first audio frame.
    [[nodiscard]] std::vector<std::byte> placeholder() const;

    /// Adds one complete audio frame, in order.
    void add_frame(std::span<const std::byte> frame);

    /// Returns the final bytes. `samples` is the length of the encoded audio per channel. The end
    /// padding follows from it: frames * samples per frame - delay - samples, at most 4095.
    [[nodiscard]] std::vector<std::byte> finish(std::int64_t samples) const;

    [[nodiscard]] std::int64_t frames() const noexcept { return frames_; }
    [[nodiscard]] std::int64_t audio_bytes() const noexcept { return audio_bytes_; }

private:
    XingSettings settings_;
    FrameHeader header_;
    std::int64_t frames_ = 0;
    std::int64_t audio_bytes_ = 0;
    std::uint16_t music_crc_ = 0;
    int first_bitrate_bps_ = 0;
    bool variable_ = false;
    // The seek table is made from up to 400 positions. When full, every second one is dropped.
    std::vector<std::uint64_t> bags_;
    std::uint32_t frames_per_bag_ = 1;
    std::uint32_t frames_in_bag_ = 0;
};

/// CRC-16/ARC (polynomial 0x8005 reflected), as used by both CRC fields.
[[nodiscard]] std::uint16_t crc16(std::span<const std::byte> bytes,
                                  std::uint16_t seed = 0) noexcept;

}  // namespace polymux::media::mp3
