#include "media/mp3/main_data_stream.hpp"

#include <algorithm>
#include <string_view>

namespace polymux::media::mp3 {

namespace {

constexpr int byte_bits = 8;
constexpr int room_for_version_bits = 32;

}  // namespace

void MainDataStream::put(unsigned value, int bits) {
    while (bits > 0) {
        if (free_bits_ == 0) {
            data_.push_back(std::byte{0});
            free_bits_ = byte_bits;
        }
        const int count = std::min(bits, free_bits_);
        bits -= count;
        free_bits_ -= count;
        const unsigned part = value >> bits & ((1U << count) - 1);
        data_.back() |= static_cast<std::byte>(part << free_bits_);
    }
}

void MainDataStream::stuff(int bits) {
    const auto put_text = [this, &bits](std::string_view text) {
        for (const char letter : text) {
            if (bits < byte_bits) return;
            put(static_cast<unsigned char>(letter), byte_bits);
            bits -= byte_bits;
        }
    };
    put_text("LAME");
    if (bits >= room_for_version_bits) put_text(version_);
    for (; bits > 0; --bits) {
        put(next_bit_ ? 1 : 0, 1);
        next_bit_ = !next_bit_;
    }
}

void MainDataStream::add_head(std::vector<std::byte> head, int payload_bytes) {
    heads_.push_back(
        {.bytes = std::move(head), .payload_bytes = static_cast<std::size_t>(payload_bytes)});
}

void MainDataStream::add_data(std::span<const std::byte> data, int bits) {
    data_.insert(data_.end(), data.begin(), data.end());
    free_bits_ = static_cast<int>(data.size()) * byte_bits - bits;
}

Result<void> MainDataStream::emit(const FrameCallback& on_frame) {
    std::size_t begin = 0;
    while (!heads_.empty() && data_.size() - begin >= heads_.front().payload_bytes) {
        const Head& head = heads_.front();
        const auto payload = std::span(data_).subspan(begin, head.payload_bytes);
        frame_.assign(head.bytes.begin(), head.bytes.end());
        frame_.insert(frame_.end(), payload.begin(), payload.end());
        begin += head.payload_bytes;
        heads_.pop_front();
        if (Result<void> given = on_frame(frame_); !given) return given;
    }
    data_.erase(data_.begin(), data_.begin() + static_cast<std::ptrdiff_t>(begin));
    return {};
}

}  // namespace polymux::media::mp3
