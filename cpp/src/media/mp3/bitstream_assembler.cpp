#include "media/mp3/bitstream_assembler.hpp"

#include <algorithm>

namespace polymux::media::mp3 {

namespace {

// At ABR and VBR. A constant bitrate leaves no choice.
constexpr std::size_t look_ahead_frames = 24;

}  // namespace

BitstreamAssembler::BitstreamAssembler(const StreamShape& shape, std::string encoder_version)
    : shape_(shape),
      look_ahead_frames_(shape.rate_control == RateControl::cbr ? 0 : look_ahead_frames),
      reservoir_(shape),
      stream_(std::move(encoder_version)) {}

Result<void> BitstreamAssembler::add(CodedFrame frame, const FrameCallback& on_frame) {
    waiting_.push_back(std::move(frame));
    while (waiting_.size() > look_ahead_frames_) {
        if (Result<void> placed = place_first(on_frame); !placed) return placed;
    }
    return {};
}

Result<void> BitstreamAssembler::finish(const FrameCallback& on_frame) {
    while (!waiting_.empty()) {
        if (Result<void> placed = place_first(on_frame); !placed) return placed;
    }
    stream_.stuff(reservoir_.level_bits());
    return stream_.emit(on_frame);
}

Result<void> BitstreamAssembler::place_first(const FrameCallback& on_frame) {
    CodedFrame& frame = waiting_.front();
    const FrameSize size = choose_size(frame);
    if (!reservoir_.fits(size, frame.main_data_bits)) {
        return Error{
            .code = ErrorCode::encoder_failed,
            .message = "an MP3 frame is too large for its size and the bit reservoir (got " +
                       std::to_string(frame.main_data_bits) + " bits of data; the reservoir has " +
                       std::to_string(reservoir_.level_bits()) + " bits)"};
    }
    const Placement placement = reservoir_.place(size, frame.main_data_bits);
    stream_.stuff(8 * placement.stuffing_bytes_before);
    set_layout(frame.head, shape_.version, size, placement.main_data_begin_bytes);
    stream_.add_head(std::move(frame.head), reservoir_.payload_bits(size) / 8);
    stream_.add_data(frame.main_data, frame.main_data_bits);
    stream_.stuff(placement.stuffing_bits_after);
    waiting_.pop_front();
    return stream_.emit(on_frame);
}

int BitstreamAssembler::needed_level_bits() const noexcept {
    const FrameSize largest{.bitrate_index = reservoir_.highest_index()};
    const int payload = reservoir_.payload_bits(largest);
    int needed = 0;
    for (std::size_t behind = waiting_.size(); behind > 1; --behind) {
        needed = std::max(0, waiting_[behind - 1].main_data_bits + needed - payload);
        needed = (needed + 7) / 8 * 8;
    }
    return needed;
}

FrameSize BitstreamAssembler::choose_size(const CodedFrame& frame) noexcept {
    const int bits = frame.main_data_bits;
    const FrameSize chosen = reservoir_.choose(frame.size, bits, frame.demand.silent);
    if (shape_.rate_control == RateControl::cbr) return chosen;
    const int needed = needed_level_bits();
    FrameSize best = chosen;
    for (FrameSize size = chosen; size.bitrate_index <= reservoir_.highest_index();
         ++size.bitrate_index) {
        if (reservoir_.level_after(size, bits) > reservoir_.level_after(best, bits)) best = size;
        if (reservoir_.level_after(best, bits) >= needed) break;
    }
    if (best != chosen) ++bumped_frames_;
    return best;
}

}  // namespace polymux::media::mp3
