#include "media/mp3/sequential_check.hpp"

#include <string>

namespace polymux::media::mp3 {

Result<void> SequentialCheck::encode(const PcmBlock& block) {
    return encoder_->encode(block,
                            [this](std::span<const std::byte> frame) { return expect(frame); });
}

Result<void> SequentialCheck::expect(std::span<const std::byte> frame) {
    expected_.emplace_back(frame.begin(), frame.end());
    return compare_available();
}

Result<void> SequentialCheck::compare(std::span<const std::byte> frame) {
    found_.emplace_back(frame.begin(), frame.end());
    return compare_available();
}

Result<void> SequentialCheck::compare_available() {
    for (; !expected_.empty() && !found_.empty(); ++compared_) {
        if (expected_.front() != found_.front()) {
            return Error{.code = ErrorCode::encoder_failed,
                         .message = "audio frame " + std::to_string(compared_) +
                                    " differs from that of one encoder for the whole file. Set "
                                    "threads to 1 (at a constant bitrate) or use exact"};
        }
        expected_.pop_front();
        found_.pop_front();
    }
    return {};
}

Result<void> SequentialCheck::finish() {
    Result<void> flushed =
        encoder_->flush([this](std::span<const std::byte> frame) { return expect(frame); });
    if (!flushed) return flushed;
    if (expected_.empty() && found_.empty()) return {};
    return Error{.code = ErrorCode::encoder_failed,
                 .message =
                     "the MP3 has another number of audio frames than that of one encoder "
                     "for the whole file"};
}

}  // namespace polymux::media::mp3
