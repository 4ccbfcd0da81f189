#include "media/mp3/segment_encoder.hpp"

#include <algorithm>

namespace polymux::media::mp3 {

SegmentEncoder::SegmentEncoder(std::unique_ptr<Encoder> encoder, const EncoderSettings& settings,
                               const Segment& segment, const EncodingStart& start)
    : encoder_(std::move(encoder)),
      splitter_(shape_of(settings)),
      rate_control_(settings.rate_control),
      frame_samples_(encoder_->frame_samples()),
      first_frame_(segment.first_frame() + start.frames),
      frames_(first_frame_),
      states_(first_frame_),
      empty_before_(start.empty_before) {
    sample = start.frames * frame_samples_;
}

Result<int> SegmentEncoder::encode(const Segment& segment, int frames,
                                   const std::atomic<bool>& stop) {
    const auto on_frame = [this](std::span<const std::byte> bytes) { return accept(bytes); };
    int samples = 0;
    for (int done = 0; done < frames && sample < segment.samples() && !seam(); ++done) {
        if (proposes_seam_) break;
        if (stop.load(std::memory_order_relaxed)) break;
        const PcmBlock block = segment.block(sample, frame_samples_);
        if (Result<void> encoded = encoder_->encode(block, on_frame); !encoded) {
            return encoded.error();
        }
        sample += block.samples;
        samples += block.samples;
        follow_states();
        if (Result<void> emptied = empty_reservoir(); !emptied) return emptied.error();
    }
    return samples;
}

Result<void> SegmentEncoder::empty_reservoir() {
    if (!empty_before_ || states_.end() < *empty_before_) return {};
    const auto on_frame = [this](std::span<const std::byte> bytes) { return accept(bytes); };
    if (Result<void> emptied = encoder_->empty_reservoir(on_frame); !emptied) return emptied;
    splitter_.empty_reservoir();
    empty_before_.reset();
    return {};
}

Result<void> SegmentEncoder::flush() {
    return encoder_->flush([this](std::span<const std::byte> bytes) { return accept(bytes); });
}

Result<void> SegmentEncoder::accept(std::span<const std::byte> bytes) {
    const FrameDemand demand = encoder_->demand(frames_.end() - first_frame_);
    Result<CodedFrame> frame = splitter_.split(bytes, demand);
    if (!frame) return frame.error();
    frames_.publish(std::move(*frame));
    return {};
}

// LAME codes a frame after it received the samples of the next one.
void SegmentEncoder::follow_states() {
    const std::int64_t coded = first_frame_ + encoder_->coded_frames();
    if (states_.end() == coded) return;
    const EncoderState state = encoder_->state();
    states_.add(state);
    if (other_ != nullptr && coded < compare_end_) compare(coded, state);
}

void SegmentEncoder::compare_with(const SegmentEncoder* other) noexcept {
    if (other == other_) return;
    other_ = other;
    equal_from_.reset();
    proposes_seam_ = false;
    searches_must_be_equal_ = false;
}

void SegmentEncoder::compare(std::int64_t number, const EncoderState& state) {
    const std::optional<EncoderState> theirs = other_->states().before(number);
    if (rate_control_ == RateControl::cbr) {
        proposes_seam_ = theirs && can_follow(state, *theirs, other_->states().searches());
    } else if (!theirs || *theirs != state) {
        equal_from_.reset();
    } else if (!equal_from_) {
        equal_from_ = number;
    }
}

/// Whether the other encoder's frames can follow this one's. `newest`: its searches until now.
bool SegmentEncoder::can_follow(const EncoderState& own, const EncoderState& theirs,
                                const GainSearches& newest) const {
    if (own == theirs) return true;
    if (own.hash != theirs.hash || searches_must_be_equal_) return false;
    for (std::size_t i = 0; i < newest.size(); ++i) {
        const bool was_searched = newest[i].count != theirs.searches[i].count;
        if (was_searched && own.searches[i] != theirs.searches[i]) return false;
    }
    return true;
}

bool SegmentEncoder::seam_still_holds() const {
    const std::optional<EncoderState> theirs = other_->states().before(states_.end());
    return theirs && can_follow(encoder_->state(), *theirs, other_->searches());
}

Result<void> SegmentEncoder::accept_seam() {
    proposes_seam_ = false;
    equal_from_ = states_.end();
    // No frame of this encoder follows.
    empty_before_ = states_.end();
    return empty_reservoir();
}

void SegmentEncoder::refuse_seam() noexcept {
    proposes_seam_ = false;
    searches_must_be_equal_ = true;
}

void SegmentEncoder::set_search(std::size_t channel, GainSearch search) {
    search.count = encoder_->searches()[channel].count;
    encoder_->set_search(channel, search);
    states_.set_search(channel, search);
}

std::optional<std::int64_t> SegmentEncoder::seam() const {
    if (!equal_from_) return std::nullopt;
    const std::int64_t frame = std::max(*equal_from_, join_from_);
    const std::int64_t emitted = frames_.end();
    if (emitted < frame) return std::nullopt;
    return emitted;
}

}  // namespace polymux::media::mp3
