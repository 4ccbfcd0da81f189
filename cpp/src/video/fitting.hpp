// Converts a decoded frame of any kind to RGB of the requested size.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "media/ffmpeg.hpp"
#include "video/orientation.hpp"
#include "video/scaling.hpp"

namespace polymux::video {

/// The part of an image that is kept.
struct Crop {
    int left = 0;
    int top = 0;
    int width = 0;
    int height = 0;
};

/// The largest centered part of an image of `width` x `height` pixels, each `pixel_aspect` times as
/// wide as high, with the proportions of the requested size.
[[nodiscard]] Crop center_crop(int width, int height, double pixel_aspect, int wanted_width,
                               int wanted_height) noexcept;

/// Keeps libswscale's tables between frames. One thread at a time.
class FrameFitter {
public:
    FrameFitter(int width, int height) noexcept : width_(width), height_(height) {}

    /// Returns the frame cropped in place, rotated and fitted: valid until the next call. Errors:
    /// unsupported_media, undecodable, out_of_memory.
    Result<std::span<const std::byte>> fit(AVFrame& frame, double pixel_aspect,
                                           const Orientation& orientation);

private:
    Result<void> prepare(const AVFrame& frame, int width, int height);

    int width_;
    int height_;
    UniqueScaler scaler_;
    media::UniqueFrame scaled_;
    std::vector<std::byte> turned_;
};

}  // namespace polymux::video
