#include "media/avio.hpp"

#include <cstdio>
#include <new>

namespace polymux::media {

Result<std::unique_ptr<AvioInput>> AvioInput::create(ByteSource& source, const CancelToken& token) {
    std::unique_ptr<AvioInput> input(new AvioInput(source, token));
    auto* buffer = static_cast<std::uint8_t*>(av_malloc(avio_buffer_bytes));
    if (buffer != nullptr) {
        input->context_ = avio_alloc_context(buffer, avio_buffer_bytes, 0, input.get(), &on_read,
                                             nullptr, source.seekable() ? &on_seek : nullptr);
    }
    if (input->context_ == nullptr) {
        av_free(buffer);
        return Error{.code = ErrorCode::out_of_memory,
                     .message = "not enough memory for an input buffer",
                     .input_name = source.name()};
    }
    input->context_->seekable = source.seekable() ? AVIO_SEEKABLE_NORMAL : 0;
    return input;
}

AvioInput::~AvioInput() {
    if (context_ != nullptr) {
        av_freep(&context_->buffer);  // FFmpeg may have replaced the buffer.
        avio_context_free(&context_);
    }
}

std::optional<Error> AvioInput::failure() const {
    if (source_failure_) return source_failure_;
    if (token_.cancelled()) {
        return Error{.code = ErrorCode::cancelled,
                     .message = "the operation was canceled",
                     .input_name = source_.name()};
    }
    return std::nullopt;
}

int AvioInput::on_read(void* opaque, std::uint8_t* buffer, int size) noexcept {
    try {
        return static_cast<AvioInput*>(opaque)->read(buffer, size);
    } catch (const std::bad_alloc&) {
        return AVERROR(ENOMEM);
    } catch (...) {
        return AVERROR_EXTERNAL;
    }
}

std::int64_t AvioInput::on_seek(void* opaque, std::int64_t offset, int whence) noexcept {
    try {
        return static_cast<AvioInput*>(opaque)->seek(offset, whence);
    } catch (const std::bad_alloc&) {
        return AVERROR(ENOMEM);
    } catch (...) {
        return AVERROR_EXTERNAL;
    }
}

int AvioInput::read(std::uint8_t* buffer, int size) {
    if (token_.cancelled() || source_failure_) return AVERROR_EXIT;
    if (size <= 0) return AVERROR(EINVAL);
    auto bytes = std::as_writable_bytes(std::span(buffer, static_cast<std::size_t>(size)));
    Result<std::size_t> count = source_.read(bytes);
    if (!count) {
        source_failure_ = count.error();
        return AVERROR_EXTERNAL;
    }
    if (*count == 0) return AVERROR_EOF;
    position_ += static_cast<std::int64_t>(*count);
    return static_cast<int>(*count);
}

std::int64_t AvioInput::seek(std::int64_t offset, int whence) {
    const std::optional<std::uint64_t> size = source_.size_bytes();
    if ((whence & AVSEEK_SIZE) != 0) {
        return size ? static_cast<std::int64_t>(*size) : AVERROR(ENOSYS);
    }
    if (token_.cancelled() || source_failure_) return AVERROR_EXIT;
    switch (whence & ~AVSEEK_FORCE) {
        case SEEK_SET:
            break;
        case SEEK_CUR:
            offset += position_;
            break;
        case SEEK_END:
            if (!size) return AVERROR(ENOSYS);
            offset += static_cast<std::int64_t>(*size);
            break;
        default:
            return AVERROR(EINVAL);
    }
    if (offset < 0) return AVERROR(EINVAL);
    Result<void> moved = source_.seek(static_cast<std::uint64_t>(offset));
    if (!moved) {
        source_failure_ = moved.error();
        return AVERROR_EXTERNAL;
    }
    position_ = offset;
    return offset;
}

}  // namespace polymux::media
