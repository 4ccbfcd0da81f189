#include "video/fitting.hpp"

#include <algorithm>
#include <cmath>
#include <string>

extern "C" {
#include <libavutil/pixdesc.h>
}

namespace polymux::video {

namespace {

/// From this height on, images without color metadata count as HDTV.
constexpr int high_definition_rows = 720;

const int* coefficients_of(const AVFrame& frame) {
    switch (frame.colorspace) {
        case AVCOL_SPC_BT709:
            return sws_getCoefficients(SWS_CS_ITU709);
        case AVCOL_SPC_BT2020_NCL:
        case AVCOL_SPC_BT2020_CL:
            return sws_getCoefficients(SWS_CS_BT2020);
        case AVCOL_SPC_SMPTE240M:
            return sws_getCoefficients(SWS_CS_SMPTE240M);
        case AVCOL_SPC_FCC:
            return sws_getCoefficients(SWS_CS_FCC);
        case AVCOL_SPC_BT470BG:
        case AVCOL_SPC_SMPTE170M:
            return sws_getCoefficients(SWS_CS_ITU601);
        default:
            return sws_getCoefficients(frame.height < high_definition_rows ? SWS_CS_ITU601
                                                                           : SWS_CS_ITU709);
    }
}

/// Some decoders report it only by the pixel format.
bool has_full_range(const AVFrame& frame) {
    if (frame.color_range == AVCOL_RANGE_JPEG) return true;
    switch (frame.format) {
        case AV_PIX_FMT_YUVJ411P:
        case AV_PIX_FMT_YUVJ420P:
        case AV_PIX_FMT_YUVJ422P:
        case AV_PIX_FMT_YUVJ440P:
        case AV_PIX_FMT_YUVJ444P:
            return true;
        default:
            return false;
    }
}

/// Rounds down to a position where neighbors do not share colors.
int to_boundary(int position, int shared_bits) {
    return position & ~((1 << shared_bits) - 1);
}

Error no_memory_for_frame() {
    return Error{.code = ErrorCode::out_of_memory,
                 .message = "not enough memory for a video frame"};
}

}  // namespace

Crop center_crop(int width, int height, double pixel_aspect, int wanted_width,
                 int wanted_height) noexcept {
    const double shown_width = width * pixel_aspect;
    const double scale = std::max(wanted_width / shown_width, double{1.0} * wanted_height / height);
    const auto kept = [](double pixels, int all) {
        return static_cast<int>(std::clamp(std::round(pixels), 1.0, static_cast<double>(all)));
    };
    Crop cut;
    cut.width = kept(wanted_width / (scale * pixel_aspect), width);
    cut.height = kept(wanted_height / scale, height);
    cut.left = (width - cut.width) / 2;
    cut.top = (height - cut.height) / 2;
    return cut;
}

Result<std::span<const std::byte>> FrameFitter::fit(AVFrame& frame, double pixel_aspect,
                                                    const Orientation& orientation) {
    const int width = orientation.transposed ? height_ : width_;
    const int height = orientation.transposed ? width_ : height_;
    const AVPixFmtDescriptor* pixels =
        av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
    if (pixels == nullptr || sws_isSupportedInput(static_cast<AVPixelFormat>(frame.format)) == 0) {
        return Error{.code = ErrorCode::unsupported_media,
                     .message = "the video's pixel format is not supported"};
    }
    // Before cropping, on which colors do not depend.
    const int* colours = coefficients_of(frame);
    const bool full_range = has_full_range(frame);
    const Crop cut = center_crop(frame.width, frame.height, pixel_aspect, width, height);
    const int left = to_boundary(cut.left, pixels->log2_chroma_w);
    const int top = to_boundary(cut.top, pixels->log2_chroma_h);
    frame.crop_left = static_cast<std::size_t>(left);
    frame.crop_top = static_cast<std::size_t>(top);
    frame.crop_right = static_cast<std::size_t>(frame.width - cut.width - left);
    frame.crop_bottom = static_cast<std::size_t>(frame.height - cut.height - top);
    if (av_frame_apply_cropping(&frame, AV_FRAME_CROP_UNALIGNED) < 0) return no_memory_for_frame();
    if (Result<void> ready = prepare(frame, width, height); !ready) return ready.error();
    // Not for pixels that are already RGB.
    sws_setColorspaceDetails(scaler_.get(), colours, full_range ? 1 : 0,
                             sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, unchanged, unchanged);
    const int rows = sws_scale(scaler_.get(), frame.data, frame.linesize, 0, frame.height,
                               scaled_->data, scaled_->linesize);
    if (rows < height) {
        return Error{.code = ErrorCode::undecodable,
                     .message = "a video frame cannot be converted to RGB"};
    }
    turn({.first = scaled_->data[0],
          .row_bytes = scaled_->linesize[0],
          .width = width,
          .height = height},
         orientation, turned_);
    return std::span<const std::byte>(turned_);
}

Result<void> FrameFitter::prepare(const AVFrame& frame, int width, int height) {
    if (!scaled_ || scaled_->width != width || scaled_->height != height) {
        scaled_ = new_frame(width, height, AV_PIX_FMT_RGB24);
        if (!scaled_) return no_memory_for_frame();
        turned_.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
    }
    scaler_.reset(sws_getCachedContext(scaler_.release(), frame.width, frame.height,
                                       static_cast<AVPixelFormat>(frame.format), width, height,
                                       AV_PIX_FMT_RGB24, scaler_flags, nullptr, nullptr, nullptr));
    if (scaler_) return {};
    return Error{.code = ErrorCode::undecodable,
                 .message = "a video frame cannot be scaled from " + std::to_string(frame.width) +
                            "x" + std::to_string(frame.height) + " to " + std::to_string(width) +
                            "x" + std::to_string(height) + " pixels"};
}

}  // namespace polymux::video
