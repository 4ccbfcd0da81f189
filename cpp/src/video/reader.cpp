#include "polymux/video/reader.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "media/opened_input.hpp"
#include "video/arguments.hpp"
#include "video/fitting.hpp"
#include "video/frame_decoder.hpp"

namespace polymux::video {

namespace {

using media::LogCapture;
using media::OpenedInput;

constexpr int max_frames_allowed = 100'000;
/// Containers round times to a millisecond, so a time counts as reached slightly before.
constexpr double rounding_s = 0.001;

Result<void> check(const FrameOptions& options) {
    if (!is_side(options.width) || !is_side(options.height)) {
        return invalid("invalid frame size (got " + std::to_string(options.width) + "x" +
                       std::to_string(options.height) + " pixels, allowed 1 to " +
                       std::to_string(max_side) + " for each side)");
    }
    if (!options.fps.usable()) {
        return invalid_fps(options.fps);
    }
    if (options.max_frames < 1 || options.max_frames > max_frames_allowed) {
        return invalid("max_frames: out of range (got " + std::to_string(options.max_frames) +
                       ", allowed 1 to " + std::to_string(max_frames_allowed) + ")");
    }
    return {};
}

/// Holds the shown frame until its display duration is known.
class FrameReader {
public:
    FrameReader(FrameDecoder& decoder, const FrameSink& sink, const FrameOptions& options,
                const std::string& name)
        : decoder_(decoder),
          sink_(sink),
          options_(options),
          name_(name),
          fitter_(options.width, options.height),
          shown_(av_frame_alloc()) {}

    Result<void> run();
    [[nodiscard]] int frames() const noexcept { return frames_; }
    [[nodiscard]] int input_width() const noexcept { return input_width_; }
    [[nodiscard]] int input_height() const noexcept { return input_height_; }

private:
    [[nodiscard]] bool complete() const noexcept { return frames_ >= options_.max_frames; }
    /// Delivers the shown frame for each output time before `end_s`.
    Result<void> give_until(double end_s);

    FrameDecoder& decoder_;
    const FrameSink& sink_;
    const FrameOptions& options_;
    const std::string& name_;
    FrameFitter fitter_;
    media::UniqueFrame shown_;
    double shown_end_s_ = 0;
    int frames_ = 0;
    int input_width_ = 0;
    int input_height_ = 0;
};

Result<void> FrameReader::run() {
    if (!shown_) {
        return Error{.code = ErrorCode::out_of_memory,
                     .message = "not enough memory for a video frame"};
    }
    bool any = false;
    while (!complete()) {
        const Result<AVFrame*> frame = decoder_.next();
        if (!frame) return frame.error();
        if (*frame == nullptr) break;
        if (any) {
            if (Result<void> given = give_until(decoder_.time_s()); !given) return given;
        } else {
            input_width_ = (*frame)->width;
            input_height_ = (*frame)->height;
        }
        any = true;
        av_frame_unref(shown_.get());
        av_frame_move_ref(shown_.get(), *frame);
        shown_end_s_ = decoder_.time_s() + decoder_.length_s();
    }
    if (any) return give_until(shown_end_s_);
    return Error{.code = ErrorCode::undecodable,
                 .message = "no frame of the video could be decoded",
                 .input_name = name_};
}

Result<void> FrameReader::give_until(double end_s) {
    const double per_second = options_.fps.per_second();
    const double tolerance_s = std::min(rounding_s, 0.25 / per_second);
    const auto moment_s = [&] { return frames_ / per_second; };
    // The first frame is always shown, even with a tiny duration.
    const auto seen = [&] { return frames_ == 0 || moment_s() < end_s - tolerance_s; };
    if (complete() || !seen()) return {};
    Result<std::span<const std::byte>> fitted =
        fitter_.fit(*shown_, decoder_.pixel_aspect(*shown_), decoder_.orientation(*shown_));
    if (!fitted) {
        fitted.error().input_name = name_;
        return fitted.error();
    }
    while (!complete() && seen()) {
        if (!sink_(*fitted)) {
            return Error{.code = ErrorCode::callback_failed,
                         .message = "the frame callback stopped the decoding",
                         .input_name = name_};
        }
        ++frames_;
    }
    return {};
}

Result<FramesReport> read(OpenedInput& input, const FrameSink& sink, const FrameOptions& options) {
    Result<std::unique_ptr<FrameDecoder>> decoder = FrameDecoder::open(input, options.video_limits);
    if (!decoder) return decoder.error();
    FrameReader reader(**decoder, sink, options, input.name());
    if (Result<void> done = reader.run(); !done) return done.error();
    return FramesReport{.frames = reader.frames(),
                        .width = options.width,
                        .height = options.height,
                        .fps = options.fps,
                        .container = input.format().iformat->name,
                        .codec = (*decoder)->codec_name(),
                        .input_width = reader.input_width(),
                        .input_height = reader.input_height(),
                        .damaged_packets = (*decoder)->damaged_packets()};
}

}  // namespace

Result<FramesReport> read_frames(media::ByteSource& source, const FrameSink& sink,
                                 const FrameOptions& options, const CancelToken& token) try {
    if (Result<void> checked = check(options); !checked) return checked.error();
    const LogCapture capture;
    Result<OpenedInput> input =
        OpenedInput::open(source, options.limits, token, media::Wanted::pictures);
    if (!input) return input.error();
    return read(*input, sink, options);
} catch (const std::bad_alloc&) {
    return Error{.code = ErrorCode::out_of_memory,
                 .message = "not enough memory to read the video",
                 .input_name = source.name()};
}

}  // namespace polymux::video
