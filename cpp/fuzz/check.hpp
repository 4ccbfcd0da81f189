// How a fuzz target reports a broken promise: libFuzzer keeps the input and names the line.
#pragma once

/// Stops with a trap at the caller's line where `condition` does not hold.
#define POLYMUX_FUZZ_CHECK(condition)       \
    do {                                    \
        if (!(condition)) __builtin_trap(); \
    } while (false)
