// Decides whether to retry a request, and how long to wait before.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "polymux/transport/exchange.hpp"

namespace polymux::transport {

/// The server's requested delay: `retry-after-ms`, or `Retry-After` in seconds, whole or with a
/// fraction, or as a date (RFC 9110, 10.2.3), which is relative to the response's own `Date` if
/// present. None if missing or invalid.
std::optional<milliseconds> retry_after(const ResponseHead& head);

/// Result of one attempt.
struct TryResult {
    const Error* failure = nullptr;      ///< Null if there was a response.
    const ResponseHead* head = nullptr;  ///< Null if there was no response.
    int proxy_status = 0;                ///< The proxy refused the connection with this status.
    bool nothing_sent = false;           ///< The server cannot have received the whole request.
    bool repeatable = false;             ///< A repetition is safe.
};

/// True if another attempt may succeed, whatever the number of attempts.
bool should_retry(const TryResult& result) noexcept;

/// Delay before attempt number `tries` + 1; `random` selects from full jitter. None if the server
/// asks for a longer delay than the policy allows.
std::optional<milliseconds> delay_before_retry(const RetryPolicy& policy, unsigned tries,
                                               const ResponseHead* head, std::uint32_t random);

}  // namespace polymux::transport
