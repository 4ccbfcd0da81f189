#include "media/avio_output.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <new>

namespace polymux::media {

namespace {

void free_context(AVIOContext*& context) noexcept {
    if (context == nullptr) return;
    av_freep(&context->buffer);
    avio_context_free(&context);
}

/// Converts the current exception to an AVERROR. Call only in a handler.
int from_exception() noexcept {
    try {
        throw;
    } catch (const std::bad_alloc&) {
        return AVERROR(ENOMEM);
    } catch (...) {
        return AVERROR_EXTERNAL;
    }
}

}  // namespace

Result<std::unique_ptr<AvioOutput>> AvioOutput::create(ByteSink& sink, const CancelToken& token) {
    std::unique_ptr<AvioOutput> output(new AvioOutput(sink, token));
    auto* buffer = static_cast<std::uint8_t*>(av_malloc(avio_buffer_bytes));
    if (buffer != nullptr) {
        output->context_ = avio_alloc_context(buffer, avio_buffer_bytes, 1, output.get(), nullptr,
                                              &on_write, &on_seek);
    }
    if (output->context_ == nullptr) {
        av_free(buffer);
        return Error{.code = ErrorCode::out_of_memory,
                     .message = "not enough memory for an output buffer"};
    }
    output->context_->seekable = AVIO_SEEKABLE_NORMAL;
    return output;
}

AvioOutput::~AvioOutput() {
    free_context(reader_);
    free_context(context_);
}

void AvioOutput::attach(AVFormatContext& format) noexcept {
    format.pb = context_;
    format.flags |= AVFMT_FLAG_CUSTOM_IO;
    format.opaque = this;
    format.io_open = &on_open;
    format.io_close2 = &on_close;
}

std::optional<Error> AvioOutput::failure() const {
    if (sink_failure_) return sink_failure_;
    if (token_.cancelled()) {
        return Error{.code = ErrorCode::cancelled, .message = "the operation was canceled"};
    }
    return std::nullopt;
}

int AvioOutput::on_write(void* opaque, Written buffer, int size) noexcept {
    try {
        const std::span bytes(buffer, static_cast<std::size_t>(std::max(size, 0)));
        return static_cast<AvioOutput*>(opaque)->write(std::as_bytes(bytes));
    } catch (...) {
        return from_exception();
    }
}

std::int64_t AvioOutput::on_seek(void* opaque, std::int64_t offset, int whence) noexcept {
    auto& output = *static_cast<AvioOutput*>(opaque);
    if ((whence & AVSEEK_SIZE) != 0) return output.size_;
    const std::int64_t position = output.target(output.position_, offset, whence);
    if (position >= 0) output.position_ = position;
    return position;
}

int AvioOutput::on_read_back(void* opaque, std::uint8_t* buffer, int size) noexcept {
    try {
        const std::span bytes(buffer, static_cast<std::size_t>(std::max(size, 0)));
        return static_cast<AvioOutput*>(opaque)->read_back(std::as_writable_bytes(bytes));
    } catch (...) {
        return from_exception();
    }
}

std::int64_t AvioOutput::on_seek_back(void* opaque, std::int64_t offset, int whence) noexcept {
    auto& output = *static_cast<AvioOutput*>(opaque);
    if ((whence & AVSEEK_SIZE) != 0) return output.size_;
    const std::int64_t position = output.target(output.read_position_, offset, whence);
    if (position >= 0) output.read_position_ = position;
    return position;
}

int AvioOutput::on_open(AVFormatContext* format, AVIOContext** io, const char* /*url*/, int flags,
                        AVDictionary** /*options*/) noexcept {
    auto& output = *static_cast<AvioOutput*>(format->opaque);
    *io = nullptr;
    const bool allowed = flags == AVIO_FLAG_READ && output.reader_ == nullptr;
    if (!allowed || !output.sink_.can_read_back()) return AVERROR(EPERM);
    auto* buffer = static_cast<std::uint8_t*>(av_malloc(avio_buffer_bytes));
    if (buffer == nullptr) return AVERROR(ENOMEM);
    output.reader_ = avio_alloc_context(buffer, avio_buffer_bytes, 0, &output, &on_read_back,
                                        nullptr, &on_seek_back);
    if (output.reader_ == nullptr) {
        av_free(buffer);
        return AVERROR(ENOMEM);
    }
    output.reader_->seekable = AVIO_SEEKABLE_NORMAL;
    output.read_position_ = 0;
    *io = output.reader_;
    return 0;
}

int AvioOutput::on_close(AVFormatContext* format, AVIOContext* io) noexcept {
    auto& output = *static_cast<AvioOutput*>(format->opaque);
    if (io != nullptr && io == output.reader_) free_context(output.reader_);
    return 0;
}

int AvioOutput::write(std::span<const std::byte> bytes) {
    if (token_.cancelled() || sink_failure_) return AVERROR_EXIT;
    Result<void> written = fill_to(position_);
    if (written) written = write_through(bytes);
    if (!written) {
        sink_failure_ = written.error();
        return AVERROR_EXTERNAL;
    }
    position_ += static_cast<std::int64_t>(bytes.size());
    size_ = std::max(size_, position_);
    return static_cast<int>(bytes.size());
}

Result<void> AvioOutput::write_through(std::span<const std::byte> bytes) {
    const auto known = static_cast<std::size_t>(size_ - position_);
    const std::size_t overlap = std::min(known, bytes.size());
    if (overlap > 0) {
        const auto offset = static_cast<std::uint64_t>(position_);
        if (auto patched = sink_.patch(offset, bytes.first(overlap)); !patched) return patched;
    }
    return overlap < bytes.size() ? sink_.write(bytes.subspan(overlap)) : Result<void>();
}

// A muxer may seek beyond the end, but the sink accepts only consecutive bytes.
Result<void> AvioOutput::fill_to(std::int64_t position) {
    static constexpr std::array<std::byte, 4096> zeros{};
    while (size_ < position) {
        const auto missing = static_cast<std::size_t>(position - size_);
        const std::size_t count = std::min(missing, zeros.size());
        if (auto done = sink_.write(std::span(zeros).first(count)); !done) return done;
        size_ += static_cast<std::int64_t>(count);
    }
    return {};
}

int AvioOutput::read_back(std::span<std::byte> buffer) {
    if (token_.cancelled() || sink_failure_) return AVERROR_EXIT;
    Result<std::size_t> count = sink_.read_back(static_cast<std::uint64_t>(read_position_), buffer);
    if (!count) {
        sink_failure_ = count.error();
        return AVERROR_EXTERNAL;
    }
    if (*count == 0) return AVERROR_EOF;
    read_position_ += static_cast<std::int64_t>(*count);
    return static_cast<int>(*count);
}

std::int64_t AvioOutput::target(std::int64_t from, std::int64_t offset, int whence) const noexcept {
    switch (whence & ~AVSEEK_FORCE) {
        case SEEK_SET:
            break;
        case SEEK_CUR:
            offset += from;
            break;
        case SEEK_END:
            offset += size_;
            break;
        default:
            return AVERROR(EINVAL);
    }
    return offset < 0 ? AVERROR(EINVAL) : offset;
}

}  // namespace polymux::media
