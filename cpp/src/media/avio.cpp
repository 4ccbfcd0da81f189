#include "media/avio.hpp"

#include <algorithm>
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

constexpr std::uint64_t max_peeked_bytes = std::uint64_t{64} << 20U;

Result<std::size_t> AvioInput::peek(std::uint64_t offset, std::span<std::byte> buffer) {
    if (source_.seekable()) {
        const std::optional<std::uint64_t> size = source_.size_bytes();
        if (offset > INT64_MAX || (size && offset >= *size)) return std::size_t{0};
        if (Result<void> moved = source_.seek(offset); !moved) return moved.error();
        return read_fully(buffer);
    }
    if (offset > max_peeked_bytes) return std::size_t{0};
    const std::size_t wanted = offset + buffer.size();
    if (const std::size_t known = peeked_.size(); known < wanted) {
        peeked_.resize(wanted);
        Result<std::size_t> count = read_fully(std::span(peeked_).subspan(known));
        if (!count) return count;
        peeked_.resize(known + *count);
    }
    if (offset >= peeked_.size()) return std::size_t{0};
    const std::size_t count = std::min(buffer.size(), peeked_.size() - offset);
    std::copy_n(peeked_.begin() + static_cast<std::ptrdiff_t>(offset), count, buffer.begin());
    return count;
}

Result<std::size_t> AvioInput::read_fully(std::span<std::byte> buffer) {
    std::size_t filled = 0;
    while (filled < buffer.size()) {
        if (std::optional<Error> found = failure()) return *found;
        Result<std::size_t> count = source_.read(buffer.subspan(filled));
        if (!count) return count;
        if (*count == 0) break;
        filled += *count;
    }
    return filled;
}

Result<void> AvioInput::rewind() {
    return source_.seekable() ? source_.seek(0) : Result<void>();
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
    if (!peeked_.empty()) return read_peeked(bytes);
    Result<std::size_t> count = source_.read(bytes);
    if (!count) {
        source_failure_ = count.error();
        return AVERROR_EXTERNAL;
    }
    if (*count == 0) return AVERROR_EOF;
    position_ += static_cast<std::int64_t>(*count);
    return static_cast<int>(*count);
}

int AvioInput::read_peeked(std::span<std::byte> buffer) {
    const auto position = static_cast<std::size_t>(position_);
    const std::size_t count = std::min(buffer.size(), peeked_.size() - position);
    std::copy_n(peeked_.begin() + position_, count, buffer.begin());
    position_ += static_cast<std::int64_t>(count);
    if (position + count == peeked_.size()) peeked_ = {};
    return static_cast<int>(count);
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
