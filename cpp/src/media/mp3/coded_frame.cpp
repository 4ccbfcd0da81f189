#include "media/mp3/coded_frame.hpp"

#include <algorithm>

namespace polymux::media::mp3 {

namespace {

constexpr std::size_t farthest_pointer_bytes = 511;

Error contradiction(const char* what) {
    return Error{.code = ErrorCode::encoder_failed,
                 .message = std::string("LAME produced an MP3 frame that ") + what};
}

unsigned value_of(std::byte byte) noexcept {
    return std::to_integer<unsigned>(byte);
}

}  // namespace

bool same_content(const CodedFrame& one, const CodedFrame& other,
                  RateControl rate_control) noexcept {
    if (one.main_data_bits != other.main_data_bits || one.head.size() != other.head.size()) {
        return false;
    }
    if (rate_control == RateControl::cbr &&
        (one.main_data_begin_bytes != other.main_data_begin_bytes || one.size != other.size)) {
        return false;
    }
    const bool same_stereo = one.head[3] == other.head[3];
    // The first byte of the side information is the pointer; MPEG 1 has one more bit of it in the
    // next byte.
    const bool is_mpeg1 = (value_of(one.head[1]) >> 3 & 3) == 3;
    const unsigned pointer_bit = is_mpeg1 ? 0x80U : 0U;
    const bool same_second = (value_of(one.head[frame_header_bytes + 1]) | pointer_bit) ==
                             (value_of(other.head[frame_header_bytes + 1]) | pointer_bit);
    constexpr std::ptrdiff_t rest = frame_header_bytes + 2;
    return same_stereo && same_second &&
           std::equal(one.head.begin() + rest, one.head.end(), other.head.begin() + rest) &&
           one.main_data == other.main_data;
}

void set_layout(std::span<std::byte> head, MpegVersion version, FrameSize size,
                int main_data_begin_bytes) noexcept {
    const auto index = static_cast<unsigned>(size.bitrate_index);
    head[2] =
        static_cast<std::byte>((value_of(head[2]) & 0x0DU) | index << 4 | (size.padding ? 2U : 0U));
    const auto pointer = static_cast<unsigned>(main_data_begin_bytes);
    if (version == MpegVersion::mpeg1) {
        head[frame_header_bytes] = static_cast<std::byte>(pointer >> 1);
        head[frame_header_bytes + 1] = static_cast<std::byte>(
            (value_of(head[frame_header_bytes + 1]) & 0x7FU) | (pointer & 1U) << 7);
    } else {
        head[frame_header_bytes] = static_cast<std::byte>(pointer);
    }
}

FrameSplitter::FrameSplitter(const StreamShape& shape) : shape_(shape), reservoir_(shape) {}

Result<CodedFrame> FrameSplitter::split(std::span<const std::byte> frame) {
    const auto header = parse_header(frame);
    const auto side_info = header ? parse_side_info(*header, frame) : std::nullopt;
    const auto head_bytes = static_cast<std::size_t>(shape_.head_bytes());
    if (!side_info || header->crc_protected || frame.size() < head_bytes ||
        static_cast<int>(frame.size()) != header->frame_bytes) {
        return contradiction("cannot be read");
    }
    const auto pointer = static_cast<std::size_t>(side_info->main_data_begin_bytes);
    if (pointer > stream_.size()) return contradiction("refers to data before the first frame");
    const std::size_t begin = stream_.size() - pointer;
    stream_.insert(stream_.end(), frame.begin() + static_cast<std::ptrdiff_t>(head_bytes),
                   frame.end());
    const auto data_bytes = static_cast<std::size_t>((side_info->main_data_bits + 7) / 8);
    if (begin + data_bytes > stream_.size())
        return contradiction("is longer than the space reserved for it");

    CodedFrame coded;
    coded.head.assign(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(head_bytes));
    const auto first = stream_.begin() + static_cast<std::ptrdiff_t>(begin);
    coded.main_data.assign(first, first + static_cast<std::ptrdiff_t>(data_bytes));
    coded.main_data_bits = side_info->main_data_bits;
    coded.largest_granule_bits = side_info->largest_granule_bits;
    coded.main_data_begin_bytes = side_info->main_data_begin_bytes;
    if (const int rest = coded.main_data_bits % 8; rest != 0) {
        coded.main_data.back() &= static_cast<std::byte>(0xFF00U >> rest);
    }
    coded.size = {.bitrate_index = static_cast<int>(value_of(frame[2]) >> 4),
                  .padding = header->padding};
    if (stream_.size() > farthest_pointer_bytes) {
        stream_.erase(stream_.begin(), stream_.end() - farthest_pointer_bytes);
    }
    follow(coded);
    return coded;
}

void FrameSplitter::follow(CodedFrame& frame) {
    follow_size(frame);
    frame.follows_rules = follows_rules_;
}

// The silence flag is not in the stream, but shows if it decides the frame's size. If it does not,
// a frame with as many bits as the previous one is assumed to be like it.
void FrameSplitter::follow_size(CodedFrame& frame) {
    const int bits = frame.main_data_bits;
    frame.level_bits = reservoir_.level_bits();
    const FrameSize audible = reservoir_.choose(frame.size, bits, false);
    const FrameSize silent = reservoir_.choose(frame.size, bits, true);
    if (frame.size != audible) {
        frame.silent = true;
        if (frame.size != silent) follows_rules_ = false;
    } else if (audible == silent) {
        frame.silent = was_silent_ && bits == previous_bits_;
    }
    was_silent_ = frame.silent;
    previous_bits_ = bits;
    if (!reservoir_.fits(frame.size, bits)) {
        follows_rules_ = false;
        return;
    }
    const Placement placement = reservoir_.place(frame.size, bits);
    if (placement.main_data_begin_bytes != frame.main_data_begin_bytes) follows_rules_ = false;
}

}  // namespace polymux::media::mp3
