// FFmpeg I/O that writes to a ByteSink: the only way a muxer's output leaves FFmpeg.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>

#include "media/ffmpeg.hpp"
#include "polymux/cancel.hpp"
#include "polymux/media/sink.hpp"

namespace polymux::media {

/// Owns the AVIOContext. Must outlive the AVFormatContext that writes through it. FFmpeg carries
/// only an integer, so `failure()` keeps the sink's error.
class AvioOutput {
public:
    /// The sink must support patching. Sink and token must outlive this object.
    static Result<std::unique_ptr<AvioOutput>> create(ByteSink& sink, const CancelToken& token);
    ~AvioOutput();
    AvioOutput(const AvioOutput&) = delete;
    AvioOutput& operator=(const AvioOutput&) = delete;

    /// Makes `format` write here. A muxer that opens its output again, to read data that it must
    /// move, gets this sink's bytes. Any other open is refused.
    void attach(AVFormatContext& format) noexcept;

    /// Size of the output in the sink, in bytes.
    [[nodiscard]] std::int64_t bytes() const noexcept { return size_; }

    /// The cause of an error that FFmpeg reports: a canceled token or a failed sink.
    [[nodiscard]] std::optional<Error> failure() const;

private:
    using Written =
        std::conditional_t<(LIBAVFORMAT_VERSION_MAJOR < 61), std::uint8_t*, const std::uint8_t*>;

    AvioOutput(ByteSink& sink, const CancelToken& token) : sink_(sink), token_(token) {}
    static int on_write(void* opaque, Written buffer, int size) noexcept;
    static std::int64_t on_seek(void* opaque, std::int64_t offset, int whence) noexcept;
    static int on_read_back(void* opaque, std::uint8_t* buffer, int size) noexcept;
    static std::int64_t on_seek_back(void* opaque, std::int64_t offset, int whence) noexcept;
    static int on_open(AVFormatContext* format, AVIOContext** io, const char* url, int flags,
                       AVDictionary** options) noexcept;
    static int on_close(AVFormatContext* format, AVIOContext* io) noexcept;

    int write(std::span<const std::byte> bytes);
    Result<void> write_through(std::span<const std::byte> bytes);
    Result<void> fill_to(std::int64_t position);
    int read_back(std::span<std::byte> buffer);
    [[nodiscard]] std::int64_t target(std::int64_t from, std::int64_t offset,
                                      int whence) const noexcept;

    ByteSink& sink_;
    CancelToken token_;
    AVIOContext* context_ = nullptr;
    AVIOContext* reader_ = nullptr;
    std::int64_t position_ = 0;
    std::int64_t read_position_ = 0;
    std::int64_t size_ = 0;
    std::optional<Error> sink_failure_;
};

}  // namespace polymux::media
