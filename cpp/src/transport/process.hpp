// Identifies the current process with a single memory read.
#pragma once

namespace polymux::transport {

/// Differs between a forked child and its parent.
[[nodiscard]] unsigned process_generation() noexcept;

}  // namespace polymux::transport
