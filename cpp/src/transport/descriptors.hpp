// Tracks the descriptors of all engines and fetches. A forked child can close them in any state of
// its parent's threads, without touching their other data.
#pragma once

#include <cstdint>

namespace polymux::transport {

/// Records an open descriptor of the transport. Any thread.
void register_descriptor(int descriptor) noexcept;

/// Removes a descriptor, before it is closed. Any thread.
void unregister_descriptor(int descriptor) noexcept;

/// In a forked child, closes its parent's descriptors here, without notifying the peers. In other
/// processes, and the second time, it does nothing. Any thread.
void close_inherited() noexcept;

}  // namespace polymux::transport
