// Output collected in memory that becomes one Python bytes object without a complete second copy.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "interpreter.hpp"
#include "polymux/media/sink.hpp"

namespace polymux::bindings {

/// Bytes in chunks of 1 MiB. Not thread-safe. May throw std::bad_alloc.
class ChunkedBytes {
public:
    void append(std::span<const std::byte> bytes);

    /// Overwrites appended bytes. Returns false if the range is not complete.
    bool patch(std::size_t offset, std::span<const std::byte> bytes);

    /// Moves everything to a new bytes object, and frees each chunk after copying it. GIL held, but
    /// released while copying. Returns an empty reference if Python is out of memory.
    Reference take_python_bytes();

    [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
    std::deque<std::vector<std::byte>> chunks_;
    std::size_t size_ = 0;
};

/// Collects a conversion's output in `*bytes`, which the caller keeps alive.
class ChunkedSink final : public media::ByteSink {
public:
    explicit ChunkedSink(ChunkedBytes* bytes) : bytes_(bytes) {}

    Result<void> write(std::span<const std::byte> bytes) override;
    Result<void> patch(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override;
    bool can_patch() const noexcept override { return true; }
    Result<void> commit() override { return {}; }

private:
    ChunkedBytes* bytes_;
};

}  // namespace polymux::bindings
