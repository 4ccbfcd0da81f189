// CRC-32C (Castagnoli; RFC 3720 appendix B.4), as the checksum of what is kept on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace polymux::song {

/// The checksum of `bytes`; of several runs of bytes one after the other where `before` is that of
/// those that came first.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes,
                                   std::uint32_t before = 0) noexcept;

/// The same without the processor's instruction, for those that have none.
[[nodiscard]] std::uint32_t crc32c_by_table(std::span<const std::byte> bytes,
                                            std::uint32_t before = 0) noexcept;

}  // namespace polymux::song
