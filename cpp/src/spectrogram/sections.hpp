// Runs numbered parts on the calling thread and idle threads of the pool.
#pragma once

#include <cstddef>

#include "polymux/cancel.hpp"
#include "polymux/function_ref.hpp"
#include "polymux/result.hpp"

namespace polymux::spectrogram {

/// Calls `part(number)` once for each number below `count`, in parallel on several threads, and
/// returns after all calls. The assignment to threads is arbitrary; results are reproducible if
/// each part writes to its own place. A part may throw std::bad_alloc, which becomes
/// `out_of_memory`. Checks `token` before each part.
Result<void> in_parts(std::size_t count, FunctionRef<void(std::size_t)> part,
                      const CancelToken& token);

[[nodiscard]] Error cancelled();

}  // namespace polymux::spectrogram
