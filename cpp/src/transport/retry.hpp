// When a request is sent again, and how long to wait before.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "polymux/transport/exchange.hpp"

namespace polymux::transport {

/// How long the server asks to be left alone: `retry-after-ms`, or `Retry-After` in seconds, whole
/// or with a fraction, or as a date (RFC 9110, 10.2.3), which is measured from the answer's own
/// `Date` where it has one. None where there is none that makes sense.
std::optional<milliseconds> retry_after(const ResponseHead& head);

/// What one try came to.
struct TryResult {
    const Error* failure = nullptr;      ///< Null where there was an answer.
    const ResponseHead* head = nullptr;  ///< Null where there was none.
    bool nothing_sent = false;           ///< The server cannot have received the whole request.
    bool repeatable = false;             ///< A repetition does no harm.
};

/// True where another try may come to something better, whatever the number of tries.
bool should_retry(const TryResult& result) noexcept;

/// Time to wait before try number `tries` + 1; `random` chooses from full jitter. None where the
/// server wants to be left alone for longer than the policy allows.
std::optional<milliseconds> delay_before_retry(const RetryPolicy& policy, unsigned tries,
                                               const ResponseHead* head, std::uint32_t random);

}  // namespace polymux::transport
