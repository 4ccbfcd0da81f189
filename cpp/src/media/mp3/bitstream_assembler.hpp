// Frames that several encoders coded, laid out as one encoder would have: reservoir, frame sizes
// and stuffing anew.
#pragma once

#include <deque>
#include <string>

#include "media/mp3/coded_frame.hpp"
#include "media/mp3/main_data_stream.hpp"
#include "media/mp3/reservoir.hpp"

namespace polymux::media::mp3 {

/// Applied to what one encoder coded, it gives that encoder's own bytes again. Not thread-safe.
///
/// A frame may have been coded with a fuller reservoir than it finds here. So at ABR and VBR the
/// next frames are looked at before one is laid out, and where LAME's choice of its size would
/// leave them too little, a larger one is taken.
class BitstreamAssembler {
public:
    struct Options {
        int look_ahead_frames = 24;
        /// For tests: a wrong rule, more stuffing than LAME puts behind a frame.
        int extra_stuffing_bytes = 0;
    };

    BitstreamAssembler(const StreamShape& shape, std::string encoder_version,
                       const Options& options);

    /// Gives the frames that are complete now. Error `encoder_failed` when a frame cannot be
    /// placed: then none of its bytes has been given.
    Result<void> add(CodedFrame frame, const FrameCallback& on_frame);

    /// Gives all that is left, as an encoder's flush does.
    Result<void> finish(const FrameCallback& on_frame);

    /// A frame could not be placed.
    [[nodiscard]] bool stuck() const noexcept { return stuck_; }
    /// Frames made larger than LAME would have, for the sake of a later one.
    [[nodiscard]] int bumped_frames() const noexcept { return bumped_frames_; }

private:
    Result<void> place_first(const FrameCallback& on_frame);
    /// The level that the frames behind the first one need before them.
    [[nodiscard]] int needed_level_bits() const noexcept;
    [[nodiscard]] FrameSize choose_size(const CodedFrame& frame) noexcept;

    StreamShape shape_;
    Options options_;
    Reservoir reservoir_;
    MainDataStream stream_;
    std::deque<CodedFrame> waiting_;
    int bumped_frames_ = 0;
    bool stuck_ = false;
};

}  // namespace polymux::media::mp3
