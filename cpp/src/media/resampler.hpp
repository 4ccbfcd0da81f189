// Converts the decoder's frames to the encoder's planar samples, through libswresample with exactly
// the settings of ffmpeg's automatic conversion.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "media/ffmpeg.hpp"
#include "polymux/media/mp3/encoder.hpp"

namespace polymux::media {

struct PcmFormat {
    mp3::SampleFormat sample_format = mp3::SampleFormat::s16;
    int sample_rate_hz = 44'100;
    int channels = 2;

    [[nodiscard]] std::size_t sample_bytes() const noexcept {
        return sample_format == mp3::SampleFormat::s16 ? 2 : 4;
    }
};

/// Planar samples in order: appended at the end, removed from the front. Not thread-safe.
class PcmQueue {
public:
    explicit PcmQueue(const PcmFormat& format) : format_(format) {}

    [[nodiscard]] const PcmFormat& format() const noexcept { return format_; }
    [[nodiscard]] int size() const noexcept { return end_ - begin_; }
    /// Reserves room for `samples` more. Write through `planes`, then `commit` the written samples.
    std::array<std::uint8_t*, 2> reserve(int samples);
    void commit(int samples) noexcept { end_ += samples; }
    /// The oldest `samples` (at most `size()`); valid until the next `reserve`.
    mp3::PcmBlock front(int samples) const noexcept;
    void drop(int samples) noexcept { begin_ += samples; }

private:
    PcmFormat format_;
    std::array<std::vector<std::uint8_t>, 2> planes_;
    int begin_ = 0;
    int end_ = 0;
};

/// Converts frames of consecutive input formats into one output format. When the input's format
/// changes, the tail of the old one is delivered first, so no sample is lost. Not thread-safe.
class Resampler {
public:
    explicit Resampler(const PcmFormat& output)
        : output_(output), layout_(ChannelLayout::of_count(output.channels)) {}

    /// Converts up to `samples` of the frame, from sample `first`, and appends the available
    /// output. Returns 0 or an AVERROR.
    int convert(const AVFrame& frame, int first, int samples, PcmQueue& queue);
    /// Maximum number of a frame's samples to convert at once. At a rate of a few hertz, one sample
    /// becomes thousands, and a whole frame would exhaust the memory.
    [[nodiscard]] int samples_at_once(const AVFrame& frame) const noexcept;
    /// Appends the samples that the filter still holds; the next frame starts a new conversion.
    int flush(PcmQueue& queue);

private:
    int configure(const AVFrame& frame);
    int copy(const AVFrame& frame, int first, int samples, PcmQueue& queue) const;
    [[nodiscard]] const std::uint8_t** planes_from(const AVFrame& frame, int first);

    PcmFormat output_;
    ChannelLayout layout_;
    UniqueSwrContext context_;  // None while the input already has the output's format.
    bool configured_ = false;
    ChannelLayout input_layout_;
    int input_format_ = AV_SAMPLE_FMT_NONE;
    int input_rate_hz_ = 0;
    std::vector<const std::uint8_t*> input_planes_;
};

}  // namespace polymux::media
