// Received bytes that a decoder and the readers of its results share without copying.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace polymux::stream {

/// A reference-counted piece of memory. One decoder writes at its end; holders of a reference read
/// the bytes passed to them. Those bytes never change while they are shared.
class Block {
public:
    /// Readable bytes after every byte in use: SIMD code may load past the end.
    static constexpr std::size_t padding_bytes = 64;

    explicit Block(std::size_t capacity_bytes)
        : bytes_(std::make_unique_for_overwrite<char[]>(capacity_bytes + padding_bytes)),
          capacity_(capacity_bytes) {}

    char* data() noexcept { return bytes_.get(); }
    const char* data() const noexcept { return bytes_.get(); }
    std::size_t capacity_bytes() const noexcept { return capacity_; }

private:
    friend class BlockRef;

    std::unique_ptr<char[]> bytes_;
    std::size_t capacity_;
    std::atomic<std::uint32_t> owners_{1};
};

/// One reference; may be copied and dropped on any thread.
class BlockRef {
public:
    BlockRef() = default;
    /// A new block. Throws std::bad_alloc.
    static BlockRef make(std::size_t capacity_bytes) {
        BlockRef made;
        made.block_ = std::make_unique<Block>(capacity_bytes).release();
        return made;
    }
    BlockRef(const BlockRef& other) noexcept : block_(other.block_) {
        if (block_ != nullptr) block_->owners_.fetch_add(1, std::memory_order_relaxed);
    }
    BlockRef(BlockRef&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
    BlockRef& operator=(BlockRef other) noexcept {
        std::swap(block_, other.block_);
        return *this;
    }
    ~BlockRef() {
        if (block_ != nullptr && block_->owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            const std::unique_ptr<Block> last(block_);
        }
    }

    /// True if no other reference exists, so the bytes may be overwritten.
    bool unique() const noexcept { return block_->owners_.load(std::memory_order_acquire) == 1; }

    explicit operator bool() const noexcept { return block_ != nullptr; }
    Block* get() const noexcept { return block_; }
    Block* operator->() const noexcept { return block_; }

private:
    Block* block_ = nullptr;
};

}  // namespace polymux::stream
