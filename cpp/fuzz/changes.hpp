// Inputs that are lists of changes to valid data, which need no seed corpus.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// Each three bytes set a byte: its position and its value. A last one or two truncate the data.
inline std::vector<std::byte> changed(std::vector<std::byte> bytes,
                                      std::span<const std::uint8_t> changes) {
    for (; changes.size() >= 3; changes = changes.subspan(3)) {
        const std::size_t at = std::size_t{changes[0]} << 8U | changes[1];
        bytes[at % bytes.size()] = std::byte{changes[2]};
    }
    for (const std::uint8_t cut : changes) {
        bytes.resize(bytes.size() - std::min<std::size_t>(bytes.size(), cut));
    }
    return bytes;
}

/// The input itself or, for every other input, `good` with its changes.
inline std::vector<std::byte> given_or_changed(const std::vector<std::byte>& good,
                                               std::span<const std::uint8_t> given) {
    if (given.size() % 2 == 0) return changed(good, given);
    const auto whole = std::as_bytes(given);
    return {whole.begin(), whole.end()};
}
