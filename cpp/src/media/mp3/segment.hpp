// Samples of one part of a file, waiting for the encoders that need them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "polymux/media/mp3/encoder.hpp"

namespace polymux::media::mp3 {

/// Planar samples of one segment. One thread fills it, then any thread may read it. Its end may be
/// moved forward during reads, to give the rest to another segment.
class Segment {
public:
    Segment(std::int64_t first_frame, const EncoderSettings& settings);
    /// The samples of `whole` from sample `begin`, where frame `first_frame` begins.
    Segment(std::shared_ptr<const Segment> whole, int begin, std::int64_t first_frame);

    void append(const PcmBlock& block);
    /// At most `samples` from `begin`; valid as long as the segment.
    [[nodiscard]] PcmBlock block(int begin, int samples) const noexcept;
    /// Ends the segment at sample `end`, before its current end.
    void cut(int end) noexcept;

    /// Its index among the segments of the file, as the scheduler counts them.
    [[nodiscard]] std::int64_t number() const noexcept { return number_; }
    void set_number(std::int64_t number) noexcept { number_ = number; }
    /// Call when a segment was inserted before this one.
    void renumber() noexcept { ++number_; }
    /// Number in the whole file, counted from 0.
    [[nodiscard]] std::int64_t first_frame() const noexcept { return first_frame_; }
    [[nodiscard]] int samples() const noexcept { return samples_; }

    /// True for the last segment of the file.
    [[nodiscard]] bool last() const noexcept { return last_; }
    void set_last(bool last) noexcept { last_ = last; }

private:
    [[nodiscard]] PcmBlock uncut_block(int begin, int samples) const noexcept;

    std::atomic<std::int64_t> number_ = 0;
    std::int64_t first_frame_;
    int channels_;
    std::size_t sample_bytes_;
    std::atomic<int> samples_ = 0;
    std::atomic<bool> last_ = false;
    std::shared_ptr<const Segment> whole_;  // Owner of the samples from whole_begin_ on.
    int whole_begin_ = 0;
    std::array<std::vector<std::byte>, 2> planes_;
};

}  // namespace polymux::media::mp3
