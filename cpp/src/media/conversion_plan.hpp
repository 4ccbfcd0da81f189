// The plan of a conversion, made from the options and the opened input before the first frame.
#pragma once

#include <optional>
#include <vector>

#include "media/mp3/segment_plan.hpp"
#include "media/opened_input.hpp"
#include "media/reader.hpp"
#include "polymux/media/convert.hpp"
#include "polymux/media/mp3/encoder.hpp"
#include "polymux/media/mp3/xing.hpp"

namespace polymux::media {

struct ConversionPlan {
    mp3::EncoderSettings encoder;
    mp3::XingSettings xing;  ///< Without values that only the encoder has (delay, lowpass).
    bool xing_frame = true;
    mp3::SegmentPlan segments;
    int threads = 1;
    std::vector<std::byte> tag;  ///< The complete ID3v2 tag.
    std::vector<Warning> warnings;
};

[[nodiscard]] ConversionPlan plan_conversion(const OpenedInput& input, const AudioReader& reader,
                                             const ConvertOptions& options, bool can_patch);

/// "cbr", "abr", "vbr".
[[nodiscard]] const char* to_string(mp3::RateControl rate_control) noexcept;

}  // namespace polymux::media
