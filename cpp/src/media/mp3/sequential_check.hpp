// Compares the frames of a conversion with those of one encoder for the whole file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "polymux/media/mp3/encoder.hpp"
#include "polymux/result.hpp"

namespace polymux::media::mp3 {

/// Not thread-safe.
class SequentialCheck {
public:
    /// `encoder` has the settings of the conversion and must be unused.
    explicit SequentialCheck(std::unique_ptr<Encoder> encoder) : encoder_(std::move(encoder)) {}

    /// Takes the samples that the conversion reads.
    Result<void> encode(const PcmBlock& block);
    /// Takes a frame that the conversion writes. Error `encoder_failed` if it differs.
    Result<void> compare(std::span<const std::byte> frame);
    /// Call after the last samples and the last frame.
    Result<void> finish();

private:
    Result<void> expect(std::span<const std::byte> frame);
    Result<void> compare_available();

    std::unique_ptr<Encoder> encoder_;
    // Frames without a counterpart yet; one of both is empty.
    std::deque<std::vector<std::byte>> expected_;
    std::deque<std::vector<std::byte>> found_;
    std::int64_t compared_ = 0;
};

}  // namespace polymux::media::mp3
