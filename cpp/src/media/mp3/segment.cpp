#include "media/mp3/segment.hpp"

#include <algorithm>

namespace polymux::media::mp3 {

Segment::Segment(std::int64_t number, std::int64_t first_frame, const EncoderSettings& settings)
    : number_(number),
      first_frame_(first_frame),
      channels_(settings.channels),
      sample_bytes_(settings.sample_format == SampleFormat::s16 ? 2 : 4) {}

void Segment::append(const PcmBlock& block) {
    const std::size_t bytes = static_cast<std::size_t>(block.samples) * sample_bytes_;
    for (std::size_t channel = 0; channel < static_cast<std::size_t>(channels_); ++channel) {
        const auto* first = static_cast<const std::byte*>(block.planes[channel]);
        planes_[channel].insert(planes_[channel].end(), first, first + bytes);
    }
    samples_ += block.samples;
}

PcmBlock Segment::block(int begin, int samples) const noexcept {
    PcmBlock result{.planes = {}, .samples = std::min(samples, samples_ - begin)};
    for (std::size_t channel = 0; channel < static_cast<std::size_t>(channels_); ++channel) {
        result.planes[channel] =
            planes_[channel].data() + static_cast<std::size_t>(begin) * sample_bytes_;
    }
    return result;
}

}  // namespace polymux::media::mp3
