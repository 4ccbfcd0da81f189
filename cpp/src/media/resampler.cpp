#include "media/resampler.hpp"

#include <algorithm>
#include <cstring>

#include "media/formats.hpp"

namespace polymux::media {

namespace {

constexpr int flush_samples = 4096;

}  // namespace

std::array<std::uint8_t*, 2> PcmQueue::reserve(int samples) {
    const std::size_t bytes = format_.sample_bytes();
    const auto used = static_cast<std::size_t>(size()) * bytes;
    const std::size_t needed = used + static_cast<std::size_t>(samples) * bytes;
    std::array<std::uint8_t*, 2> result{};
    for (int channel = 0; channel < format_.channels; ++channel) {
        auto& plane = planes_[static_cast<std::size_t>(channel)];
        if (begin_ > 0) {
            std::memmove(plane.data(), plane.data() + static_cast<std::size_t>(begin_) * bytes,
                         used);
        }
        if (plane.size() < needed) plane.resize(needed);
        result[static_cast<std::size_t>(channel)] = plane.data() + used;
    }
    end_ -= begin_;
    begin_ = 0;
    return result;
}

mp3::PcmBlock PcmQueue::front(int samples) const noexcept {
    mp3::PcmBlock block{.planes = {}, .samples = std::min(samples, size())};
    for (int channel = 0; channel < format_.channels; ++channel) {
        const auto index = static_cast<std::size_t>(channel);
        block.planes[index] =
            planes_[index].data() + static_cast<std::size_t>(begin_) * format_.sample_bytes();
    }
    return block;
}

int Resampler::convert(const AVFrame& frame, PcmQueue& queue) {
    const ChannelLayout layout = ChannelLayout::known(frame.ch_layout);
    const bool changed = !configured_ || frame.format != input_format_ ||
                         frame.sample_rate != input_rate_hz_ || !(layout == input_layout_);
    if (changed) {
        if (const int status = flush(queue); status < 0) return status;
        if (const int status = configure(frame); status < 0) return status;
    }
    if (!context_) return copy(frame, queue);
    const int room = swr_get_out_samples(context_.get(), frame.nb_samples);
    if (room < 0) return room;
    auto planes = queue.reserve(room);
    auto** input = const_cast<const std::uint8_t**>(
        frame.extended_data);  // NOLINT(cppcoreguidelines-pro-type-const-cast):
                               // swr's signature before FFmpeg 7
    const int count = swr_convert(context_.get(), planes.data(), room, input, frame.nb_samples);
    if (count < 0) return count;
    queue.commit(count);
    return 0;
}

int Resampler::flush(PcmQueue& queue) {
    configured_ = false;
    if (!context_) return 0;
    for (;;) {
        auto planes = queue.reserve(flush_samples);
        const int count = swr_convert(context_.get(), planes.data(), flush_samples, nullptr, 0);
        if (count <= 0) {
            context_.reset();
            return count;
        }
        queue.commit(count);
    }
}

int Resampler::configure(const AVFrame& frame) {
    context_.reset();
    input_layout_ = ChannelLayout::known(frame.ch_layout);
    input_format_ = frame.format;
    input_rate_hz_ = frame.sample_rate;
    const AVSampleFormat format = to_ffmpeg(output_.sample_format);
    configured_ = true;
    if (input_format_ == format && input_rate_hz_ == output_.sample_rate_hz &&
        input_layout_ == layout_) {
        return 0;
    }
    SwrContext* context = nullptr;
    int status = swr_alloc_set_opts2(
        &context, layout_.get(), format, output_.sample_rate_hz, input_layout_.get(),
        static_cast<AVSampleFormat>(input_format_), input_rate_hz_, 0, nullptr);
    context_.reset(context);
    if (status >= 0) status = swr_init(context);
    if (status < 0) {
        context_.reset();
        configured_ = false;
    }
    return status;
}

int Resampler::copy(const AVFrame& frame, PcmQueue& queue) const {
    const auto planes = queue.reserve(frame.nb_samples);
    for (int channel = 0; channel < output_.channels; ++channel) {
        std::memcpy(planes[static_cast<std::size_t>(channel)], frame.extended_data[channel],
                    static_cast<std::size_t>(frame.nb_samples) * output_.sample_bytes());
    }
    queue.commit(frame.nb_samples);
    return 0;
}

}  // namespace polymux::media
