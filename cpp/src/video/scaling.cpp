#include "video/scaling.hpp"

namespace polymux::video {

media::UniqueFrame new_frame(int width, int height, AVPixelFormat format) {
    media::UniqueFrame frame(av_frame_alloc());
    if (!frame) return frame;
    frame->width = width;
    frame->height = height;
    frame->format = format;
    if (av_frame_get_buffer(frame.get(), 0) < 0) frame.reset();
    return frame;
}

}  // namespace polymux::video
