// CRC-32C (Castagnoli; RFC 3720 appendix B.4), the checksum of stored data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace polymux::song {

/// Returns the checksum of `bytes`. For consecutive pieces, `before` is the checksum of the earlier
/// ones.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes,
                                   std::uint32_t before = 0) noexcept;

/// The same without the processor's CRC instruction.
[[nodiscard]] std::uint32_t crc32c_by_table(std::span<const std::byte> bytes,
                                            std::uint32_t before = 0) noexcept;

}  // namespace polymux::song
