// The descriptors of all engines and fetches, so that the child of a fork can close them whatever
// its parent's threads were at: it touches nothing else of theirs.
#pragma once

#include <cstdint>

namespace polymux::transport {

/// Notes that an open descriptor is the transport's. Any thread.
void register_descriptor(int descriptor) noexcept;

/// Forgets one, before it is closed. Any thread.
void unregister_descriptor(int descriptor) noexcept;

/// In a child of a fork: closes what was its parent's, here alone and without a word to the peers.
/// Elsewhere, and the second time, it does nothing. Any thread.
void close_inherited() noexcept;

}  // namespace polymux::transport
