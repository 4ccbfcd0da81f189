// Work in numbered parts, done by the caller and whoever of the pool is idle.
#pragma once

#include <cstddef>

#include "polymux/cancel.hpp"
#include "polymux/function_ref.hpp"
#include "polymux/result.hpp"

namespace polymux::spectrogram {

/// Calls `part(number)` once for each number below `count`, at the same time on several threads,
/// and returns when all calls have. Which thread does which is not known: a part that writes where
/// no other does gives the same results each time. A part may throw std::bad_alloc, which becomes
/// `out_of_memory`. Looks at `token` before each part.
Result<void> in_parts(std::size_t count, FunctionRef<void(std::size_t)> part,
                      const CancelToken& token);

[[nodiscard]] Error cancelled();

}  // namespace polymux::spectrogram
