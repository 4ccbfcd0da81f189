// Output collected in memory that becomes one Python bytes object without ever existing twice.
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

    /// Overwrites what was appended before; false when the range is not all there.
    bool patch(std::size_t offset, std::span<const std::byte> bytes);

    /// Moves everything into a new bytes object; each chunk is freed once it is copied. GIL held
    /// and released while copying. Empty when Python has no memory left.
    Reference take_python_bytes();

    [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
    std::deque<std::vector<std::byte>> chunks_;
    std::size_t size_ = 0;
};

/// Collects a conversion's output into `*bytes`, which the caller keeps alive.
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
