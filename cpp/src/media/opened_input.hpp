// Guarded opening: the only place that opens a container. Content decides the format, only listed
// formats open, nothing but the given source is ever read, and a stranger's file cannot cost more
// than the limits say.
#pragma once

#include <cstdint>
#include <memory>

#include "media/avio.hpp"
#include "media/ffmpeg.hpp"
#include "polymux/cancel.hpp"
#include "polymux/media/limits.hpp"
#include "polymux/media/source.hpp"

namespace polymux::media {

/// What an input is opened for: its sound, or its moving pictures, which GIF has too.
enum class Wanted : std::uint8_t { sound, pictures };

/// An open container. Moves; the source must outlive it.
class OpenedInput {
public:
    /// Errors: unsupported_media, undecodable, limit_exceeded, cancelled, and the source's own.
    static Result<OpenedInput> open(ByteSource& source, const Limits& limits,
                                    const CancelToken& token, Wanted wanted = Wanted::sound);

    [[nodiscard]] AVFormatContext& format() const noexcept { return *format_; }
    [[nodiscard]] const AvioInput& io() const noexcept { return *io_; }
    [[nodiscard]] const std::string& name() const noexcept { return io_->name(); }
    [[nodiscard]] const Limits& limits() const noexcept { return limits_; }

    /// The failed source or the cancelled token behind `averror`, else `code` with FFmpeg's words.
    [[nodiscard]] Error explain(ErrorCode code, std::string message, int averror) const;

private:
    OpenedInput(std::unique_ptr<AvioInput> io, const Limits& limits, Wanted wanted)
        : io_(std::move(io)), limits_(limits), wanted_(wanted) {}
    [[nodiscard]] const char* formats() const noexcept;
    Result<void> check_leading_tag() const;
    Result<const AVInputFormat*> recognise() const;
    [[nodiscard]] bool must_probe_packets(const AVInputFormat& recognised) const;
    Result<void> open_container(const AVInputFormat* recognised);
    Result<void> check_limits() const;

    // Order matters: the container reads through io_ until it is closed.
    std::unique_ptr<AvioInput> io_;
    UniqueFormatContext format_;
    Limits limits_;
    Wanted wanted_;
};

/// True where the stream's content is encrypted, by what the container says of it.
[[nodiscard]] bool is_encrypted(const AVStream& stream);

/// The demuxers that may open, comma-separated, as FFmpeg's `format_whitelist` takes them.
[[nodiscard]] const char* accepted_formats() noexcept;

/// The audio decoders of the linked FFmpeg, comma-separated, for `codec_whitelist`: pictures and
/// video are not decoded in here, not even to learn their size.
[[nodiscard]] const std::string& accepted_decoders();

}  // namespace polymux::media
