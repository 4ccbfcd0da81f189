// The payload of all frames as one stream of bits, and the frames' heads that are put into it.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "polymux/media/mp3/encoder.hpp"

namespace polymux::media::mp3 {

/// Heads and main data go in on their own, complete frames come out. Not thread-safe.
class MainDataStream {
public:
    explicit MainDataStream(std::string encoder_version) : version_(std::move(encoder_version)) {}

    /// Bits that no decoder looks at, as LAME fills them: its name, its version, then ones and
    /// zeros in turn, which go on where the last stuffing ended.
    void stuff(int bits);
    /// The next frame's head, and the bytes of payload that stand behind it.
    void add_head(std::vector<std::byte> head, int payload_bytes);
    /// A frame's main data: `bits` of `data`, at a byte's edge; zeros behind them.
    void add_data(std::span<const std::byte> data, int bits);
    /// Gives every frame whose payload is complete.
    Result<void> emit(const FrameCallback& on_frame);

private:
    struct Head {
        std::vector<std::byte> bytes;
        std::size_t payload_bytes = 0;
    };

    void put(unsigned value, int bits);

    std::string version_;
    std::deque<Head> heads_;
    std::vector<std::byte> data_;  // From the payload of the first head on.
    int free_bits_ = 0;            // Of the last byte.
    bool next_bit_ = false;        // Of the ones and zeros in turn.
    std::vector<std::byte> frame_;
};

}  // namespace polymux::media::mp3
