// Interface of MP3 encoders: PCM in, complete frames out. Several encoders can work on segments of
// one file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "polymux/media/convert.hpp"
#include "polymux/result.hpp"

namespace polymux::media::mp3 {

enum class RateControl : std::uint8_t { cbr, abr, vbr };

/// The sample formats of libmp3lame. All are planar, as in the ffmpeg program.
enum class SampleFormat : std::uint8_t { s16, s32, f32 };

struct EncoderSettings {
    int sample_rate_hz = 44'100;
    int channels = 2;
    SampleFormat sample_format = SampleFormat::s16;
    RateControl rate_control = RateControl::vbr;
    int bitrate_bps = 128'000;  ///< For cbr and abr.
    double vbr_quality = 0;     ///< For vbr.
    Preset preset = Preset::ffmpeg;
};

/// Samples of one call: `planes[channel]` points to `samples` values of the encoder's format.
struct PcmBlock {
    std::array<const void*, 2> planes{};
    int samples = 0;  ///< Per channel.
};

/// Receives one complete frame, valid only during the call.
using FrameCallback = std::function<Result<void>(std::span<const std::byte>)>;

/// Unequal states have equal hashes with a probability of about 2^-64.
using StateHash = std::array<std::uint64_t, 4>;

/// How LAME will begin the next search for the gain of a channel, at CBR and ABR.
struct GainSearch {
    int gain = 0;
    int step = 0;
    int count = 0;  ///< Searches so far. A silent channel is not searched.

    /// Whether the next search begins alike.
    friend bool operator==(const GainSearch& one, const GainSearch& other) noexcept {
        return one.gain == other.gain && one.step == other.step;
    }
};

using GainSearches = std::array<GainSearch, 2>;  // For each channel.

/// Two encoders with equal settings and equal states code equal samples to equal frames. At ABR and
/// VBR, the level of the bit reservoir is not a part of the state.
struct EncoderState {
    StateHash hash{};  ///< Covers everything but the searches.
    GainSearches searches{};

    friend bool operator==(const EncoderState&, const EncoderState&) noexcept = default;
};

/// LAME found out this while it coded one frame, at ABR and VBR.
struct FrameDemand {
    int needed_bits = 0;  ///< Before the level of the reservoir limited them.
    bool silent = false;  ///< LAME treats the frame as "analog silence". VBR only.
    /// For each granule and channel: whether it is not silent, and its perceptual entropy. VBR
    /// only.
    std::array<bool, 4> coded{};
    std::array<float, 4> entropy{};
};

/// Not thread-safe; different encoders may run on different threads.
class Encoder {
public:
    virtual ~Encoder() = default;

    /// Samples per frame: 1152, or 576 below 32 kHz. Blocks of this size are best.
    [[nodiscard]] virtual int frame_samples() const noexcept = 0;

    /// Samples of delay that the encoder adds before the first sample (LAME: 576).
    [[nodiscard]] virtual int delay_samples() const noexcept = 0;
    [[nodiscard]] virtual int lowpass_hz() const noexcept = 0;
    /// Fields of LAME's tag; see XingSettings.
    [[nodiscard]] virtual int tag_flags() const noexcept = 0;
    [[nodiscard]] virtual int noise_shaping() const noexcept = 0;

    /// Number of samples so far that were NaN, infinite or far too loud. The encoder set NaN to 0
    /// and limited the others.
    [[nodiscard]] virtual std::int64_t unusable_samples() const noexcept = 0;

    virtual Result<void> encode(const PcmBlock& block, const FrameCallback& on_frame) = 0;

    /// Frames coded so far, including those that were not emitted yet.
    [[nodiscard]] virtual std::int64_t coded_frames() const noexcept = 0;
    [[nodiscard]] virtual EncoderState state() const noexcept = 0;
    [[nodiscard]] virtual GainSearches searches() const noexcept = 0;
    /// Sets the gain and step.
    virtual void set_search(std::size_t channel, const GainSearch& search) noexcept = 0;
    /// The demand of frame `number`, counted from 0: one of the newest 256 coded frames.
    [[nodiscard]] virtual FrameDemand demand(std::int64_t number) const noexcept = 0;

    /// Fills up the frames coded so far. The next frame then finds an empty bit reservoir. The
    /// encoder keeps its other state.
    virtual Result<void> empty_reservoir(const FrameCallback& on_frame) = 0;

    /// The bits that a frame with this demand may have at a level of the bit reservoir, at ABR and
    /// VBR. Only for an encoder that encodes nothing.
    [[nodiscard]] virtual int limit_bits(const FrameDemand& demand, int level_bits) = 0;

    /// Emits the last frames: none without samples. The encoder accepts no more samples afterwards.
    virtual Result<void> flush(const FrameCallback& on_frame) = 0;
};

/// libmp3lame with the settings of FFmpeg's wrapper: joint stereo, bit reservoir, no LAME tag.
Result<std::unique_ptr<Encoder>> create_lame_encoder(const EncoderSettings& settings);

/// "LAME 3.100": the version of the loaded library.
[[nodiscard]] std::string lame_version();

/// "AVX2" or "baseline": the instructions that LAME uses on this processor.
[[nodiscard]] std::string lame_instructions();

}  // namespace polymux::media::mp3
