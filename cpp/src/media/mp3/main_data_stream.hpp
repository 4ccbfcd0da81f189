// The payload of all frames as one stream of bits, and the frame heads inserted into it.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "polymux/media/mp3/encoder.hpp"

namespace polymux::media::mp3 {

/// Accepts heads and main data separately, and emits complete frames. Not thread-safe.
class MainDataStream {
public:
    explicit MainDataStream(std::string encoder_version) : version_(std::move(encoder_version)) {}

    /// Appends ignored bits as LAME does: its name, its version, then alternating ones and zeros,
    /// which continue from the end of the last stuffing.
    void stuff(int bits);
    /// Adds the next frame's head, and the number of payload bytes that follow it.
    void add_head(std::vector<std::byte> head, int payload_bytes);
    /// Adds a frame's main data: `bits` of `data`, aligned to a byte, followed by zeros.
    void add_data(std::span<const std::byte> data, int bits);
    /// Emits every frame whose payload is complete.
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
    int free_bits_ = 0;            // Unused bits of the last byte.
    bool next_bit_ = false;        // Next value of the alternating ones and zeros.
    std::vector<std::byte> frame_;
};

}  // namespace polymux::media::mp3
