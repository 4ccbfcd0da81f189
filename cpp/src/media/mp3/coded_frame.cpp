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

Result<CodedFrame> FrameSplitter::split(std::span<const std::byte> frame,
                                        const FrameDemand& demand) {
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
    if (const int rest = coded.main_data_bits % 8; rest != 0) {
        coded.main_data.back() &= static_cast<std::byte>(0xFF00U >> rest);
    }
    coded.size = {.bitrate_index = static_cast<int>(value_of(frame[2]) >> 4),
                  .padding = header->padding};
    if (stream_.size() > farthest_pointer_bytes) {
        stream_.erase(stream_.begin(), stream_.end() - farthest_pointer_bytes);
    }
    coded.demand = demand;
    coded.level_bits = reservoir_.level_bits();
    const FrameSize expected = reservoir_.choose(coded.size, coded.main_data_bits, demand.silent);
    const int begin_bytes = side_info->main_data_begin_bytes;
    if (coded.size != expected || !reservoir_.fits(coded.size, coded.main_data_bits) ||
        reservoir_.place(coded.size, coded.main_data_bits).main_data_begin_bytes != begin_bytes) {
        return contradiction("has another size or place than expected");
    }
    return coded;
}

}  // namespace polymux::media::mp3
