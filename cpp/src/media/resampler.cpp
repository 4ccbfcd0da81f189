#include "media/resampler.hpp"

#include <algorithm>
#include <cstring>

#include "media/formats.hpp"

namespace polymux::media {

namespace {

constexpr int flush_samples = 4096;
constexpr std::int64_t max_samples_at_once = 1 << 18;

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

int Resampler::samples_at_once(const AVFrame& frame) const noexcept {
    const std::int64_t samples = max_samples_at_once * frame.sample_rate / output_.sample_rate_hz;
    return static_cast<int>(std::clamp<std::int64_t>(samples, 1, max_samples_at_once));
}

int Resampler::convert(const AVFrame& frame, int first, int samples, PcmQueue& queue) {
    const ChannelLayout layout = ChannelLayout::known(frame.ch_layout);
    const bool changed = !configured_ || frame.format != input_format_ ||
                         frame.sample_rate != input_rate_hz_ || !(layout == input_layout_);
    if (changed) {
        if (const int status = flush(queue); status < 0) return status;
        if (const int status = configure(frame); status < 0) return status;
    }
    if (!context_) return copy(frame, first, samples, queue);
    const int room = swr_get_out_samples(context_.get(), samples);
    if (room < 0) return room;
    auto planes = queue.reserve(room);
    const int count =
        swr_convert(context_.get(), planes.data(), room, planes_from(frame, first), samples);
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

int Resampler::copy(const AVFrame& frame, int first, int samples, PcmQueue& queue) const {
    const auto planes = queue.reserve(samples);
    const std::size_t skipped = static_cast<std::size_t>(first) * output_.sample_bytes();
    for (int channel = 0; channel < output_.channels; ++channel) {
        std::memcpy(planes[static_cast<std::size_t>(channel)],
                    frame.extended_data[channel] + skipped,
                    static_cast<std::size_t>(samples) * output_.sample_bytes());
    }
    queue.commit(samples);
    return 0;
}

const std::uint8_t** Resampler::planes_from(const AVFrame& frame, int first) {
    const auto format = static_cast<AVSampleFormat>(frame.format);
    const int channels = frame.ch_layout.nb_channels;
    const bool planar = av_sample_fmt_is_planar(format) != 0;
    const int step_bytes = av_get_bytes_per_sample(format) * (planar ? 1 : channels);
    input_planes_.clear();
    for (int plane = 0; plane < (planar ? channels : 1); ++plane) {
        input_planes_.push_back(frame.extended_data[plane] +
                                static_cast<std::ptrdiff_t>(first) * step_bytes);
    }
    return input_planes_.data();
}

}  // namespace polymux::media
