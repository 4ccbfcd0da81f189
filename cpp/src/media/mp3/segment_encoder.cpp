#include "media/mp3/segment_encoder.hpp"

#include <algorithm>

namespace polymux::media::mp3 {

SegmentEncoder::SegmentEncoder(std::unique_ptr<Encoder> encoder, const EncoderSettings& settings,
                               const Segment& segment, bool keep_raw, const EncodingStart& start)
    : encoder_(std::move(encoder)),
      splitter_(shape_of(settings)),
      rate_control_(settings.rate_control),
      frame_samples_(encoder_->frame_samples()),
      keep_raw_(keep_raw),
      first_frame_(segment.first_frame() + start.frames),
      frames_(first_frame_),
      empty_before_(start.empty_before) {
    sample = start.frames * frame_samples_;
}

Result<int> SegmentEncoder::encode(const Segment& segment, int frames,
                                   const std::atomic<bool>& stop) {
    const auto on_frame = [this](std::span<const std::byte> bytes) { return accept(bytes); };
    int samples = 0;
    for (int done = 0; done < frames && sample < segment.samples(); ++done) {
        if (stop.load(std::memory_order_relaxed)) break;
        const PcmBlock block = segment.block(sample, frame_samples_);
        if (Result<void> encoded = encoder_->encode(block, on_frame); !encoded) {
            return encoded.error();
        }
        sample += block.samples;
        samples += block.samples;
        fed_samples_ += block.samples;
        if (Result<void> emptied = empty_reservoir(); !emptied) return emptied.error();
    }
    return samples;
}

// LAME codes a frame after it received the whole next frame.
Result<void> SegmentEncoder::empty_reservoir() {
    if (!empty_before_) return {};
    const std::int64_t coded = first_frame_ + fed_samples_ / frame_samples_ - 1;
    if (coded < *empty_before_) return {};
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
    Result<CodedFrame> frame = splitter_.split(bytes);
    if (!frame) return frame.error();
    if (other_ != nullptr) compare(frames_.end(), *frame);
    previous_data_ = frame->main_data;
    std::vector<std::byte> raw;
    if (keep_raw_) raw.assign(bytes.begin(), bytes.end());
    frames_.publish(std::move(*frame), std::move(raw));
    return {};
}

void SegmentEncoder::compare_with(const SegmentEncoder* other) noexcept {
    if (other == other_) return;
    other_ = other;
    agreed_from_.reset();
    distinctive_frames_ = 0;
}

void SegmentEncoder::agree_from(std::int64_t frame) noexcept {
    agree_from_ = frame;
    distinctive_frames_ = 0;
}

void SegmentEncoder::compare(std::int64_t number, const CodedFrame& frame) {
    if (number >= compare_end_) return;
    const auto same = other_->frames().same_as(number, frame, rate_control_);
    // The other encoder ends before this frame, so there is nothing to compare.
    if (!same) return;
    if (!*same || !frame.follows_rules) {
        if (distinctive_frames_ >= agreement_frames && number >= agree_from_) ++parted_frames_;
        agreed_from_.reset();
        distinctive_frames_ = 0;
        return;
    }
    if (!agreed_from_) agreed_from_ = number;
    // In silence all encoders agree, whatever their state.
    const bool tells = frame.main_data != previous_data_;
    if (tells && number >= agree_from_) ++distinctive_frames_;
}

std::optional<std::int64_t> SegmentEncoder::agreement(int length) const noexcept {
    if (!agreed_from_ || distinctive_frames_ < length) return std::nullopt;
    return std::max(*agreed_from_, agree_from_);
}

std::int64_t SegmentEncoder::wanted_frames() const noexcept {
    constexpr std::int64_t ahead = agreement_frames;
    return first_frame_ + fed_samples_ / frame_samples_ + ahead;
}

}  // namespace polymux::media::mp3
