// Lays out frames from several encoders as a single encoder would: recomputes reservoir, frame
// sizes and stuffing.
#pragma once

#include <deque>
#include <string>

#include "media/mp3/coded_frame.hpp"
#include "media/mp3/main_data_stream.hpp"
#include "media/mp3/reservoir.hpp"

namespace polymux::media::mp3 {

/// Applied to the frames of one encoder, it reproduces that encoder's bytes. Not thread-safe.
///
/// A frame may have been coded with a fuller reservoir than is available here. So at ABR and VBR it
/// looks at the next frames before it lays out one. If LAME's frame size would leave them too few
/// bits, it selects a larger size.
class BitstreamAssembler {
public:
    BitstreamAssembler(const StreamShape& shape, std::string encoder_version);

    /// Emits the frames that are now complete. Error `encoder_failed` if a frame cannot be placed;
    /// none of its bytes has been emitted then.
    Result<void> add(CodedFrame frame, const FrameCallback& on_frame);

    /// Emits all remaining frames, as an encoder's flush does.
    Result<void> finish(const FrameCallback& on_frame);

    /// Frames made larger than by LAME, for the sake of a later frame.
    [[nodiscard]] int bumped_frames() const noexcept { return bumped_frames_; }

private:
    Result<void> place_first(const FrameCallback& on_frame);
    /// The reservoir level that the frames after the first one need.
    [[nodiscard]] int needed_level_bits() const noexcept;
    [[nodiscard]] FrameSize choose_size(const CodedFrame& frame) noexcept;

    StreamShape shape_;
    std::size_t look_ahead_frames_;
    Reservoir reservoir_;
    MainDataStream stream_;
    std::deque<CodedFrame> waiting_;
    int bumped_frames_ = 0;
};

}  // namespace polymux::media::mp3
