// Compares the frames of a conversion with those of one encoder for the whole file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "media/mp3/frame_check.hpp"

namespace polymux::media::mp3 {

class SequentialCheck final : public FrameCheck {
public:
    /// `encoder` has the settings of the conversion and must be unused.
    explicit SequentialCheck(std::unique_ptr<Encoder> encoder) : encoder_(std::move(encoder)) {}

    Result<void> encode(const PcmBlock& block) override;
    Result<void> compare(std::span<const std::byte> frame) override;
    Result<void> finish() override;
    [[nodiscard]] std::string reference() const override {
        return "one " + lame_version() + " encoder";
    }

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
