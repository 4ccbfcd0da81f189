// Which process this is, for the cost of a look at memory.
#pragma once

namespace polymux::transport {

/// Differs in a child of a fork from its parent's.
[[nodiscard]] unsigned process_generation() noexcept;

}  // namespace polymux::transport
