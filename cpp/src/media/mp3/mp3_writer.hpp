// Writes one MP3 file to a sink: tag, Xing/Info frame, audio frames, in this order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "polymux/media/mp3/xing.hpp"
#include "polymux/media/sink.hpp"
#include "polymux/result.hpp"

namespace polymux::media::mp3 {

/// The Xing/Info frame precedes the audio but is complete only after it. A sink that supports
/// patching gets a placeholder first. Any other sink gets nothing until the end or until
/// `hold_back_bytes` are pending. Beyond that, the frame is omitted, as the ffmpeg program does on
/// pipes. Not thread-safe.
class Mp3Writer {
public:
    struct Options {
        bool xing_frame = true;
        std::size_t hold_back_bytes = 8 * 1024 * 1024;
    };

    Mp3Writer(ByteSink& sink, std::vector<std::byte> tag, const XingSettings& xing,
              const Options& options);

    Result<void> begin();
    Result<void> write_frame(std::span<const std::byte> frame);
    /// Writes the remaining data. `samples` is the length of the encoded audio, per channel.
    Result<void> finish(std::int64_t samples);

    [[nodiscard]] std::int64_t bytes() const noexcept { return written_ + pending_bytes(); }
    [[nodiscard]] std::int64_t frames() const noexcept { return xing_.frames(); }
    [[nodiscard]] std::int64_t audio_bytes() const noexcept { return xing_.audio_bytes(); }
    [[nodiscard]] bool has_xing_frame() const noexcept { return has_xing_; }

private:
    Result<void> write(std::span<const std::byte> bytes);
    Result<void> write_pending();
    [[nodiscard]] std::int64_t pending_bytes() const noexcept {
        return static_cast<std::int64_t>(pending_.size());
    }

    ByteSink& sink_;
    std::vector<std::byte> tag_;
    XingFrame xing_;
    Options options_;
    bool has_xing_ = false;
    bool holding_back_ = false;
    std::int64_t written_ = 0;
    std::vector<std::byte> pending_;  // Whole frames not yet written to the sink.
};

}  // namespace polymux::media::mp3
