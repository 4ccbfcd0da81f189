// Puts the frames of all runs into one stream, in order, and makes sure that the layouter knows
// this LAME before it is trusted with a seam.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "media/mp3/board.hpp"
#include "media/mp3/layouter.hpp"
#include "polymux/media/mp3/encoder.hpp"

namespace polymux::media::mp3 {

/// As long as the frames are those of the first encoder, the layouter must give that encoder's own
/// bytes. Where it does not, the first encoder goes on alone, and nothing wrong has been written.
/// Used by one thread.
class Stitcher {
public:
    Stitcher(Board& board, const StreamShape& shape, std::string encoder_version,
             const Layouter::Options& options, FrameCallback write);

    /// Takes and writes what is ready. True when the whole file has been written.
    Result<bool> stitch();

    [[nodiscard]] int seams() const noexcept { return seams_; }
    [[nodiscard]] int bumped_frames() const noexcept { return layouter_.bumped_frames(); }
    [[nodiscard]] bool fell_back() const noexcept { return sequential_; }

private:
    Result<void> add(PublishedFrames::Taken taken);
    Result<void> check_and_write(std::span<const std::byte> frame);
    Result<void> fall_back();
    Result<void> finish();

    Board& board_;
    Layouter layouter_;
    FrameCallback write_;
    FrameCallback from_layouter_;
    std::int64_t next_frame_ = 0;
    std::deque<std::vector<std::byte>>
        expected_;  // The first encoder's own bytes, not yet written.
    bool own_frames_only_ = true;
    bool differs_ = false;
    bool sequential_ = false;
    int seams_ = 0;
};

}  // namespace polymux::media::mp3
