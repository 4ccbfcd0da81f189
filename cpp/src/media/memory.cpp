#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "polymux/media/sink.hpp"
#include "polymux/media/source.hpp"

namespace polymux::media {

Result<std::size_t> ByteSink::read_back(std::uint64_t /*offset_bytes*/,
                                        std::span<std::byte> /*buffer*/) {
    return Error{.code = ErrorCode::internal,
                 .message = "this output does not support reading back"};
}

namespace {

class MemorySource final : public ByteSource {
public:
    MemorySource(std::span<const std::byte> bytes, std::string name)
        : bytes_(bytes), name_(std::move(name)) {}

    Result<std::size_t> read(std::span<std::byte> buffer) override {
        if (offset_bytes_ >= bytes_.size()) return std::size_t{0};
        const std::size_t offset = offset_bytes_;
        const std::size_t count = std::min(buffer.size(), bytes_.size() - offset);
        if (count > 0) std::memcpy(buffer.data(), bytes_.data() + offset, count);
        offset_bytes_ += count;
        return count;
    }

    Result<void> seek(std::uint64_t offset_bytes) override {
        offset_bytes_ = offset_bytes;
        return {};
    }

    [[nodiscard]] bool seekable() const noexcept override { return true; }
    [[nodiscard]] std::optional<std::uint64_t> size_bytes() const noexcept override {
        return bytes_.size();
    }
    [[nodiscard]] const std::string& name() const noexcept override { return name_; }

private:
    std::span<const std::byte> bytes_;
    std::string name_;
    std::uint64_t offset_bytes_ = 0;
};

class MemorySink final : public ByteSink {
public:
    explicit MemorySink(std::vector<std::byte>* bytes) : bytes_(bytes), start_(bytes->size()) {}
    MemorySink(const MemorySink&) = delete;
    MemorySink& operator=(const MemorySink&) = delete;

    ~MemorySink() override {
        if (!committed_) bytes_->resize(start_);
    }

    Result<void> write(std::span<const std::byte> bytes) override {
        try {
            bytes_->insert(bytes_->end(), bytes.begin(), bytes.end());
        } catch (const std::bad_alloc&) {
            return too_large();
        } catch (const std::length_error&) {
            return too_large();
        }
        return {};
    }

    Result<void> patch(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override {
        const std::uint64_t written = bytes_->size() - start_;
        if (offset_bytes > written || bytes.size() > written - offset_bytes) {
            return Error{.code = ErrorCode::internal,
                         .message = "a patch of the output in memory is outside the written range"};
        }
        if (!bytes.empty()) {
            std::memcpy(bytes_->data() + start_ + offset_bytes, bytes.data(), bytes.size());
        }
        return {};
    }

    [[nodiscard]] bool can_patch() const noexcept override { return true; }

    Result<std::size_t> read_back(std::uint64_t offset_bytes,
                                  std::span<std::byte> buffer) override {
        const std::uint64_t written = bytes_->size() - start_;
        if (offset_bytes >= written) return std::size_t{0};
        const std::size_t count = std::min<std::uint64_t>(buffer.size(), written - offset_bytes);
        std::memcpy(buffer.data(), bytes_->data() + start_ + offset_bytes, count);
        return count;
    }

    [[nodiscard]] bool can_read_back() const noexcept override { return true; }

    Result<void> commit() override {
        committed_ = true;
        return {};
    }

private:
    static Error too_large() {
        return {.code = ErrorCode::out_of_memory,
                .message = "not enough memory for the output. Write it to a file instead"};
    }

    std::vector<std::byte>* bytes_;
    std::size_t start_;
    bool committed_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> memory_source(std::span<const std::byte> bytes, std::string name) {
    return std::make_unique<MemorySource>(bytes, std::move(name));
}

std::unique_ptr<ByteSink> memory_sink(std::vector<std::byte>* bytes) {
    return std::make_unique<MemorySink>(bytes);
}

}  // namespace polymux::media
