#include "media/mp3/segment.hpp"

#include <algorithm>

namespace polymux::media::mp3 {

Segment::Segment(std::int64_t first_frame, const EncoderSettings& settings)
    : first_frame_(first_frame),
      channels_(settings.channels),
      sample_bytes_(settings.sample_format == SampleFormat::s16 ? 2 : 4) {}

Segment::Segment(std::shared_ptr<const Segment> whole, int begin, std::int64_t first_frame)
    : number_(whole->number_ + 1),
      first_frame_(first_frame),
      channels_(whole->channels_),
      sample_bytes_(whole->sample_bytes_),
      samples_(whole->samples_ - begin),
      last_(whole->last_.load()),
      whole_(std::move(whole)),
      whole_begin_(begin) {}

void Segment::cut(int end) noexcept {
    samples_ = end;
    last_ = false;
}

void Segment::append(const PcmBlock& block) {
    const std::size_t bytes = static_cast<std::size_t>(block.samples) * sample_bytes_;
    for (std::size_t channel = 0; channel < static_cast<std::size_t>(channels_); ++channel) {
        const auto* first = static_cast<const std::byte*>(block.planes[channel]);
        planes_[channel].insert(planes_[channel].end(), first, first + bytes);
    }
    samples_ += block.samples;
}

PcmBlock Segment::block(int begin, int samples) const noexcept {
    return uncut_block(begin, std::min(samples, samples_ - begin));
}

PcmBlock Segment::uncut_block(int begin, int samples) const noexcept {
    if (whole_) return whole_->uncut_block(whole_begin_ + begin, samples);
    PcmBlock result{.planes = {}, .samples = samples};
    for (std::size_t channel = 0; channel < static_cast<std::size_t>(channels_); ++channel) {
        result.planes[channel] =
            planes_[channel].data() + static_cast<std::size_t>(begin) * sample_bytes_;
    }
    return result;
}

}  // namespace polymux::media::mp3
