// Reports a broken invariant in a fuzz target: libFuzzer keeps the input and names the line.
#pragma once

/// Stops with a trap at the caller's line if `condition` is false.
#define POLYMUX_FUZZ_CHECK(condition)       \
    do {                                    \
        if (!(condition)) __builtin_trap(); \
    } while (false)
