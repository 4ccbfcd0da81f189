#include "song/segment_merge.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "song/segment_layout.hpp"

namespace polymux::song {

namespace {

constexpr std::size_t buffered_postings = std::size_t{64} * 1024;

/// A kept track: its old and new position.
struct KeptTrack {
    const Segment* segment = nullptr;
    std::uint32_t track = 0;
    std::uint32_t old_base = 0;
    std::uint32_t new_base = 0;
    std::uint32_t frames = 0;
};

/// The kept tracks of one input, found by frame. A block of the timeline is at most as long as a
/// gap, so two tracks never share one.
class Moves {
public:
    Moves(const Segment& segment, const Parameters& parameters)
        : block_bits_(block_bits_for(static_cast<std::uint32_t>(parameters.gap_frames))),
          track_of_block_((segment.frames() >> block_bits_) + 1) {}

    void add(const KeptTrack& track) {
        tracks_.push_back(track);
        const std::uint32_t last = track.old_base + std::max(track.frames, 1U) - 1;
        for (std::uint32_t block = track.old_base >> block_bits_; block <= last >> block_bits_;
             ++block) {
            if (block < track_of_block_.size()) {
                track_of_block_[block] = static_cast<std::uint32_t>(tracks_.size());
            }
        }
    }

    /// The frame's new position; none if its track is not kept.
    [[nodiscard]] std::optional<std::uint32_t> moved(std::uint32_t frame) const noexcept {
        const std::uint32_t block = frame >> block_bits_;
        if (block >= track_of_block_.size() || track_of_block_[block] == 0) return {};
        const KeptTrack& track = tracks_[track_of_block_[block] - 1];
        if (frame < track.old_base || frame - track.old_base >= track.frames) return {};
        return track.new_base + (frame - track.old_base);
    }

    [[nodiscard]] std::span<const KeptTrack> tracks() const noexcept { return tracks_; }

private:
    static unsigned block_bits_for(std::uint32_t gap_frames) noexcept {
        unsigned bits = 0;
        while (gap_frames >> bits > 1) ++bits;
        return bits;
    }

    unsigned block_bits_;
    std::vector<std::uint32_t> track_of_block_;  ///< Counted from 1; 0 means no track.
    std::vector<KeptTrack> tracks_;
};

/// Iterates over the kept postings of one input.
class PostingCursor {
public:
    static constexpr std::uint32_t ended = std::numeric_limits<std::uint32_t>::max();

    PostingCursor(const Segment& segment, const Moves& moves)
        : segment_(segment),
          moves_(moves),
          postings_(SegmentParts::postings(segment)),
          directory_(SegmentParts::directory(segment)) {
        advance();
    }

    /// `ended` past the last posting.
    [[nodiscard]] std::uint32_t key() const noexcept { return key_; }
    [[nodiscard]] std::uint32_t frame() const noexcept { return frame_; }

    void advance() noexcept {
        const int low_bits = SegmentParts::low_bits(segment_);
        const std::uint32_t low_mask = (1U << low_bits) - 1;
        while (next_ < postings_.size()) {
            while (bucket_ + 2 < directory_.size() && next_ >= directory_[bucket_ + 1]) ++bucket_;
            const std::uint32_t posting = postings_[next_++];
            const auto frame = moves_.moved(segment_.posting_frame(posting));
            if (!frame) continue;
            key_ = bucket_ << low_bits | (posting >> SegmentParts::frame_bits(segment_) & low_mask);
            frame_ = *frame;
            return;
        }
        key_ = ended;
    }

private:
    const Segment& segment_;
    const Moves& moves_;
    std::span<const std::uint32_t> postings_;
    std::span<const std::uint32_t> directory_;
    std::size_t next_ = 0;
    std::uint32_t bucket_ = 0;
    std::uint32_t key_ = ended;
    std::uint32_t frame_ = 0;
};

/// Accepts postings in order of key and frame, and counts them for each bucket.
class PostingSink {
public:
    PostingSink(SegmentWriter& writer, int frame_bits)
        : writer_(writer),
          frame_bits_(frame_bits),
          low_bits_(key_bits - directory_bits_of(frame_bits)),
          directory_((std::size_t{1} << directory_bits_of(frame_bits)) + 1) {
        buffer_.reserve(buffered_postings);
    }

    void put(std::uint32_t key, std::uint32_t frame) {
        ++directory_[(key >> low_bits_) + 1];
        buffer_.push_back((key & ((1U << low_bits_) - 1)) << frame_bits_ | frame);
        if (buffer_.size() == buffered_postings) flush();
    }

    [[nodiscard]] std::span<const std::uint32_t> finish() {
        flush();
        for (std::size_t bucket = 1; bucket < directory_.size(); ++bucket) {
            directory_[bucket] += directory_[bucket - 1];
        }
        return directory_;
    }

private:
    void flush() {
        writer_.write(bytes_of(std::span<const std::uint32_t>(buffer_)));
        buffer_.clear();
    }

    SegmentWriter& writer_;
    int frame_bits_;
    int low_bits_;
    std::vector<std::uint32_t> buffer_;
    std::vector<std::uint32_t> directory_;
};

class Merge {
public:
    Merge(const Parameters& parameters, ByteTarget& target)
        : parameters_(parameters), line_(parameters), writer_(target) {}

    Result<void> take(const MergeInput& input) {
        const Segment& segment = *input.segment;
        Moves moves(segment, parameters_);
        for (std::uint32_t index = 0; index < segment.track_count(); ++index) {
            const TrackRow row = segment.track(index);
            if (!input.keeps(row)) continue;
            if (!line_.add(row.song, row.first_frame, row.frames)) return line_too_long();
            moves.add({.segment = &segment,
                       .track = index,
                       .old_base = row.base_frame,
                       .new_base = line_.rows().back().base_frame,
                       .frames = row.frames});
        }
        inputs_.push_back({&segment, std::move(moves)});
        return {};
    }

    Result<void> write(std::uint64_t generation) {
        writer_.section(section_tracks, line_.rows());
        if (auto written = write_peaks(); !written) return written;
        write_postings();
        return writer_.finish(parameters_, line_, generation);
    }

private:
    template <typename Visit>
    void each_track(int window, Visit&& visit) const {
        for (const auto& [segment, moves] : inputs_) {
            for (const KeptTrack& track : moves.tracks()) {
                visit(SegmentParts::peaks_of(*segment, track.track, window));
            }
        }
    }

    Result<void> write_peaks() {
        std::vector<std::uint32_t> spots[2];
        bool whole = true;
        for (int window = 0; window < 2; ++window) {
            writer_.begin(section_counts + window);
            std::uint32_t slice = 0;
            std::uint32_t peak = 0;
            each_track(window, [&](const SegmentParts::TrackPeaks& track) {
                writer_.write(std::as_bytes(track.counts));
                const std::uint32_t first_peak = peak;
                for (const std::uint8_t count : track.counts) {
                    if (slice++ % SegmentParts::spot_slices == 0) spots[window].push_back(peak);
                    peak += count;
                }
                whole = whole && peak - first_peak == track.peaks.size();
            });
        }
        for (int window = 0; window < 2; ++window) {
            writer_.section(section_spots + window, std::span<const std::uint32_t>(spots[window]));
        }
        for (int window = 0; window < 2; ++window) {
            writer_.begin(section_peaks + window);
            each_track(window, [this](const SegmentParts::TrackPeaks& track) {
                writer_.write(std::as_bytes(track.peaks));
            });
        }
        if (whole) return {};
        return Error{
            .code = ErrorCode::undecodable,
            .message =
                std::string("a segment of the song index is damaged: it has fewer peaks than "
                            "declared")
                    .append(rebuild_hint)};
    }

    /// The inputs' tracks are consecutive on the new timeline. For one key, all frames of an input
    /// therefore precede those of the next.
    void write_postings() {
        writer_.begin(section_postings);
        PostingSink sink(writer_, line_.frame_bits());
        std::vector<PostingCursor> cursors;
        cursors.reserve(inputs_.size());
        for (const auto& [segment, moves] : inputs_) cursors.emplace_back(*segment, moves);
        for (;;) {
            std::uint32_t key = PostingCursor::ended;
            for (const PostingCursor& cursor : cursors) key = std::min(key, cursor.key());
            if (key == PostingCursor::ended) break;
            for (PostingCursor& cursor : cursors) {
                for (; cursor.key() == key; cursor.advance()) sink.put(key, cursor.frame());
            }
        }
        writer_.section(section_directory, sink.finish());
    }

    struct Input {
        const Segment* segment;
        Moves moves;
    };

    const Parameters& parameters_;
    LineOfTime line_;
    SegmentWriter writer_;
    std::vector<Input> inputs_;
};

}  // namespace

bool MergeInput::keeps(const TrackRow& row) const noexcept {
    return !std::binary_search(removed.begin(), removed.end(), row.song);
}

Result<void> merge_segments(const Parameters& parameters, std::span<const MergeInput> inputs,
                            std::uint64_t generation, ByteTarget& target) {
    try {
        Merge merge(parameters, target);
        for (const MergeInput& input : inputs) {
            if (auto taken = merge.take(input); !taken) return taken;
        }
        return merge.write(generation);
    } catch (const std::bad_alloc&) {
        return Error{.code = ErrorCode::out_of_memory,
                     .message = "not enough memory to merge segments of the song index"};
    }
}

}  // namespace polymux::song
