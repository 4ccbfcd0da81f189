// FFmpeg I/O that reads from a ByteSource: the only way input bytes reach FFmpeg.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "media/ffmpeg.hpp"
#include "polymux/cancel.hpp"
#include "polymux/media/source.hpp"

namespace polymux::media {

/// Owns the AVIOContext. Must outlive the AVFormatContext that reads through it. FFmpeg carries
/// only an integer, so `failure()` keeps the source's error.
class AvioInput {
public:
    /// Starts at the source's beginning. The source must outlive this object.
    static Result<std::unique_ptr<AvioInput>> create(ByteSource& source, const CancelToken& token);
    ~AvioInput();
    AvioInput(const AvioInput&) = delete;
    AvioInput& operator=(const AvioInput&) = delete;

    [[nodiscard]] AVIOContext* context() const noexcept { return context_; }
    [[nodiscard]] const std::string& name() const noexcept { return source_.name(); }
    [[nodiscard]] ByteSource& source() const noexcept { return source_; }
    [[nodiscard]] const CancelToken& token() const noexcept { return token_; }

    /// Reads bytes at any offset, before FFmpeg reads: as many as exist, up to `buffer.size()`. A
    /// source that cannot seek is read up to there; FFmpeg gets the same bytes later.
    Result<std::size_t> peek(std::uint64_t offset, std::span<std::byte> buffer);
    /// After `peek`: FFmpeg reads from the beginning.
    Result<void> rewind();

    /// The cause of an error that FFmpeg reports: a canceled token or a failed source.
    [[nodiscard]] std::optional<Error> failure() const;

private:
    AvioInput(ByteSource& source, const CancelToken& token) : source_(source), token_(token) {}
    static int on_read(void* opaque, std::uint8_t* buffer, int size) noexcept;
    static std::int64_t on_seek(void* opaque, std::int64_t offset, int whence) noexcept;
    int read(std::uint8_t* buffer, int size);
    int read_peeked(std::span<std::byte> buffer);
    std::int64_t seek(std::int64_t offset, int whence);

    ByteSource& source_;
    CancelToken token_;
    AVIOContext* context_ = nullptr;
    Result<std::size_t> read_fully(std::span<std::byte> buffer);

    std::int64_t position_ = 0;
    std::vector<std::byte> peeked_;  // The beginning of a source that cannot seek.
    std::optional<Error> source_failure_;
};

}  // namespace polymux::media
