#include "media/mp3/mp3_writer.hpp"

namespace polymux::media::mp3 {

namespace {

// Frames reach the sink in batches, because a sink may need a lock (Python's) for each call.
constexpr std::size_t batch_bytes = 64 * 1024;

}  // namespace

Mp3Writer::Mp3Writer(ByteSink& sink, std::vector<std::byte> tag, const XingSettings& xing,
                     const Options& options)
    : sink_(sink), tag_(std::move(tag)), xing_(xing), options_(options) {}

Result<void> Mp3Writer::begin() {
    has_xing_ = options_.xing_frame;
    holding_back_ = has_xing_ && !sink_.can_patch();
    if (holding_back_) return {};
    if (Result<void> done = write(tag_); !done) return done;
    return has_xing_ ? write(xing_.placeholder()) : Result<void>();
}

Result<void> Mp3Writer::write_frame(std::span<const std::byte> frame) {
    xing_.add_frame(frame);
    pending_.insert(pending_.end(), frame.begin(), frame.end());
    if (holding_back_) {
        if (pending_.size() < options_.hold_back_bytes) return {};
        holding_back_ = false;
        has_xing_ = false;
        if (Result<void> done = write(tag_); !done) return done;
        Result<void> done = write_pending();
        pending_.shrink_to_fit();
        return done;
    }
    return pending_.size() < batch_bytes ? Result<void>() : write_pending();
}

Result<void> Mp3Writer::finish(std::int64_t samples) {
    if (holding_back_) {
        if (Result<void> done = write(tag_); !done) return done;
        if (Result<void> done = write(xing_.finish(samples)); !done) return done;
        return write_pending();
    }
    if (Result<void> done = write_pending(); !done) return done;
    return has_xing_ ? sink_.patch(tag_.size(), xing_.finish(samples)) : Result<void>();
}

Result<void> Mp3Writer::write(std::span<const std::byte> bytes) {
    written_ += static_cast<std::int64_t>(bytes.size());
    return bytes.empty() ? Result<void>() : sink_.write(bytes);
}

Result<void> Mp3Writer::write_pending() {
    Result<void> done = write(pending_);
    pending_.clear();
    return done;
}

}  // namespace polymux::media::mp3
