// Safe opening: the only place that opens a container. The content decides the format, only listed
// formats open, only the given source is read, and the limits apply to untrusted files.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "media/avio.hpp"
#include "media/ffmpeg.hpp"
#include "polymux/cancel.hpp"
#include "polymux/media/limits.hpp"
#include "polymux/media/source.hpp"

namespace polymux::media {

/// Purpose of an input: its audio, or its video, including GIF.
enum class Wanted : std::uint8_t { sound, pictures };

/// An open container. Movable; the source must outlive it.
class OpenedInput {
public:
    /// Errors: `unsupported_media`, `undecodable`, `limit_exceeded`, `cancelled`, and errors of the
    /// source.
    static Result<OpenedInput> open(ByteSource& source, const Limits& limits,
                                    const CancelToken& token, Wanted wanted = Wanted::sound);

    [[nodiscard]] AVFormatContext& format() const noexcept { return *format_; }
    /// Completes the start time of the container, which libavformat leaves open for H.264 whose
    /// container has no decoding times: its decoder is not used here. Call it before `read`.
    void find_start();
    /// False if ffmpeg may begin at another time.
    [[nodiscard]] bool knows_start() const noexcept { return knows_start_; }

    /// As av_read_frame and avformat_seek_file.
    int read(AVPacket& packet);
    int seek(int stream_index, std::int64_t target);

    [[nodiscard]] const AvioInput& io() const noexcept { return *io_; }
    [[nodiscard]] const std::string& name() const noexcept { return io_->name(); }
    [[nodiscard]] const Limits& limits() const noexcept { return limits_; }

    /// The failed source or canceled token that caused `averror`, otherwise `code` with FFmpeg's
    /// text.
    [[nodiscard]] Error explain(ErrorCode code, std::string message, int averror) const;

private:
    OpenedInput(std::unique_ptr<AvioInput> io, const Limits& limits, Wanted wanted)
        : io_(std::move(io)), limits_(limits), wanted_(wanted) {}
    [[nodiscard]] const char* formats() const noexcept;
    Result<const AVInputFormat*> recognise() const;
    [[nodiscard]] bool must_probe_packets(const AVInputFormat& recognised) const;
    Result<void> open_container(const AVInputFormat* recognised);
    Result<void> check_limits() const;

    // Order matters: the container reads through io_ until it is closed.
    std::unique_ptr<AvioInput> io_;
    UniqueFormatContext format_;
    std::deque<UniquePacket> packets_;  // Read by find_start.
    bool knows_start_ = true;
    Limits limits_;
    Wanted wanted_;
};

/// True for video that is not a cover image.
[[nodiscard]] bool is_moving_video(const AVStream& stream);

/// True if the stream's content is encrypted, by the container's metadata.
[[nodiscard]] bool is_encrypted(const AVStream& stream);

/// The accepted demuxers, comma-separated, for FFmpeg's `format_whitelist`.
[[nodiscard]] const char* accepted_formats() noexcept;

/// The audio decoders of the linked FFmpeg, comma-separated, for `codec_whitelist`. Images and
/// video are never decoded here, not even for their size.
[[nodiscard]] const std::string& accepted_decoders();

}  // namespace polymux::media
