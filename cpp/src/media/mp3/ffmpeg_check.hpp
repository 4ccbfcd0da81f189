// Compares the frames of a conversion with those of the ffmpeg program.
#pragma once

#include <memory>
#include <vector>

#include "media/child_process.hpp"
#include "media/mp3/frame_check.hpp"
#include "polymux/cancel.hpp"
#include "polymux/media/convert.hpp"

namespace polymux::media::mp3 {

class FfmpegCheck final : public FrameCheck {
public:
    /// Runs the program on the file `path` with the same options.
    static Result<std::unique_ptr<FrameCheck>> start(const ConvertOptions& options,
                                                     const std::string& path,
                                                     const CancelToken& token);

    FfmpegCheck(ChildProcess program, std::string version, CancelToken token)
        : program_(std::move(program)), version_(std::move(version)), token_(std::move(token)) {}

    Result<void> compare(std::span<const std::byte> frame) override;
    Result<void> finish() override;
    [[nodiscard]] std::string reference() const override { return version_; }

private:
    [[nodiscard]] Result<std::span<const std::byte>> next_frame();
    bool read_more();

    ChildProcess program_;
    std::string version_;
    CancelToken token_;
    std::vector<std::byte> buffer_;
    std::size_t begin_ = 0;  // Start of the next frame.
    std::int64_t compared_ = 0;
};

}  // namespace polymux::media::mp3
