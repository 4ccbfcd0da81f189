#include "media/mp3/segment_encoder.hpp"

#include <algorithm>

namespace polymux::media::mp3 {

void PublishedFrames::publish(CodedFrame frame, std::vector<std::byte> raw) {
    const std::scoped_lock lock(mutex_);
    frames_.push_back({.frame = std::move(frame), .raw = std::move(raw)});
    ++end_;
}

std::optional<PublishedFrames::Taken> PublishedFrames::take() {
    const std::scoped_lock lock(mutex_);
    if (frames_.empty()) return std::nullopt;
    std::optional<Taken> taken(std::move(frames_.front()));
    frames_.pop_front();
    ++begin_;
    return taken;
}

std::vector<FrameOutline> PublishedFrames::outlines(std::int64_t first, std::int64_t count) const {
    const std::scoped_lock lock(mutex_);
    std::vector<FrameOutline> found;
    const std::int64_t end = std::min(end_, first + count);
    for (std::int64_t number = std::max(first, begin_); number < end; ++number) {
        const CodedFrame& frame = frames_[static_cast<std::size_t>(number - begin_)].frame;
        found.push_back({.bits = frame.main_data_bits,
                         .largest_granule_bits = frame.largest_granule_bits,
                         .level_bits = frame.level_bits,
                         .size = frame.size,
                         .silent = frame.silent});
    }
    return found;
}

void PublishedFrames::drop_before(std::int64_t frame) {
    const std::scoped_lock lock(mutex_);
    while (!frames_.empty() && begin_ < frame) {
        frames_.pop_front();
        ++begin_;
    }
}

std::int64_t PublishedFrames::end() const {
    const std::scoped_lock lock(mutex_);
    return end_;
}

std::int64_t PublishedFrames::begin() const {
    const std::scoped_lock lock(mutex_);
    return begin_;
}

std::optional<bool> PublishedFrames::same_as(std::int64_t number, const CodedFrame& frame,
                                             RateControl rate_control) const {
    const std::scoped_lock lock(mutex_);
    if (number < begin_ || number >= end_) return std::nullopt;
    return same_content(frames_[static_cast<std::size_t>(number - begin_)].frame, frame,
                        rate_control);
}

Run::Run(std::unique_ptr<Encoder> encoder, const EncoderSettings& settings, const Segment& segment,
         bool keep_raw, const RunStart& start)
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

Result<int> Run::encode(const Segment& segment, int frames, const std::atomic<bool>& stop) {
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

// LAME codes a frame when it has been given all of the next one.
Result<void> Run::empty_reservoir() {
    if (!empty_before_) return {};
    const std::int64_t coded = first_frame_ + fed_samples_ / frame_samples_ - 1;
    if (coded < *empty_before_) return {};
    const auto on_frame = [this](std::span<const std::byte> bytes) { return accept(bytes); };
    if (Result<void> emptied = encoder_->empty_reservoir(on_frame); !emptied) return emptied;
    splitter_.empty_reservoir();
    empty_before_.reset();
    return {};
}

Result<void> Run::flush() {
    return encoder_->flush([this](std::span<const std::byte> bytes) { return accept(bytes); });
}

Result<void> Run::accept(std::span<const std::byte> bytes) {
    Result<CodedFrame> frame = splitter_.split(bytes);
    if (!frame) return frame.error();
    if (other_ != nullptr) compare(frames_.end(), *frame);
    previous_data_ = frame->main_data;
    std::vector<std::byte> raw;
    if (keep_raw_) raw.assign(bytes.begin(), bytes.end());
    frames_.publish(std::move(*frame), std::move(raw));
    return {};
}

void Run::compare_with(const Run* other) noexcept {
    if (other == other_) return;
    other_ = other;
    agreed_from_.reset();
    telling_frames_ = 0;
}

void Run::agree_from(std::int64_t frame) noexcept {
    agree_from_ = frame;
    telling_frames_ = 0;
}

void Run::compare(std::int64_t number, const CodedFrame& frame) {
    if (number >= compare_end_) return;
    const auto same = other_->frames().same_as(number, frame, rate_control_);
    // The other one ends before this frame: nothing is learned.
    if (!same) return;
    if (!*same || !frame.follows_rules) {
        if (telling_frames_ >= agreement_frames && number >= agree_from_) ++parted_frames_;
        agreed_from_.reset();
        telling_frames_ = 0;
        return;
    }
    if (!agreed_from_) agreed_from_ = number;
    // In silence all encoders agree, whatever they remember.
    const bool tells = frame.main_data != previous_data_;
    if (tells && number >= agree_from_) ++telling_frames_;
}

std::optional<std::int64_t> Run::agreement(int length) const noexcept {
    if (!agreed_from_ || telling_frames_ < length) return std::nullopt;
    return std::max(*agreed_from_, agree_from_);
}

std::int64_t Run::wanted_frames() const noexcept {
    constexpr std::int64_t ahead = agreement_frames;
    return first_frame_ + fed_samples_ / frame_samples_ + ahead;
}

}  // namespace polymux::media::mp3
