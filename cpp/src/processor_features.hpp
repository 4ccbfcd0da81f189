// Instructions of x86-64 that not all processors have. __builtin_cpu_supports cannot tell: with
// zig's runtime library, which wheels contain, it always returns 0.
#pragma once

namespace polymux::internal {

/// SSE 4.2 and POPCNT.
[[nodiscard]] bool has_sse4() noexcept;

/// All of these, AVX2, BMI1 and BMI2. The kernel must support AVX2, too: it saves larger
/// registers.
[[nodiscard]] bool has_avx2() noexcept;

}  // namespace polymux::internal
