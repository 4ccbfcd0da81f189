#include "transport/retry.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <string>

namespace polymux::transport {

namespace {

/// A decimal number that spans the whole text; none for signs, exponents and other text.
std::optional<double> decimal(std::string_view text) noexcept {
    double value = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    if (!whole || !std::isfinite(value) || std::signbit(value)) return std::nullopt;
    return value;
}

std::optional<milliseconds> of_milliseconds(std::optional<double> count) noexcept {
    constexpr double max_ms = 1e12;  // 31 years: only compared, never waited for.
    if (!count) return std::nullopt;
    return milliseconds(static_cast<milliseconds::rep>(std::min(*count, max_ms)));
}

/// Seconds since 1970; none if invalid. libcurl parses all three date formats of HTTP.
std::optional<std::time_t> date(std::string_view text) {
    constexpr std::size_t max_length = 64;
    if (text.empty() || text.size() > max_length) return std::nullopt;
    const std::time_t seconds = curl_getdate(std::string(text).c_str(), nullptr);
    if (seconds == -1) return std::nullopt;
    return seconds;
}

bool is_one_of(int status, std::initializer_list<int> statuses) noexcept {
    return std::find(statuses.begin(), statuses.end(), status) != statuses.end();
}

}  // namespace

std::optional<milliseconds> retry_after(const ResponseHead& head) {
    if (const auto exact = decimal(head.field("retry-after-ms"))) return of_milliseconds(exact);
    const std::string_view text = head.field("retry-after");
    if (text.empty()) return std::nullopt;
    constexpr double milliseconds_per_second = 1000;
    if (const auto seconds = decimal(text)) {
        return of_milliseconds(*seconds * milliseconds_per_second);
    }
    const auto then = date(text);
    if (!then) return std::nullopt;
    const auto now = date(head.field("date")).value_or(std::time(nullptr));
    return of_milliseconds(std::max(std::difftime(*then, now), 0.0) * milliseconds_per_second);
}

bool should_retry(const TryResult& result) noexcept {
    if (result.failure == nullptr) {
        const int status = result.head == nullptr ? 0 : result.head->status;
        const auto advice =
            result.head == nullptr ? std::string_view() : result.head->field("x-should-retry");
        constexpr int first_error = 400;
        if (status >= first_error && advice == "true") return true;
        if (advice == "false") return false;
        return is_one_of(status, {429, 503}) ||
               (result.repeatable && is_one_of(status, {408, 425, 500, 502, 504, 529}));
    }
    switch (result.failure->code) {
        case ErrorCode::connect_failed: {
            const bool is_final = result.proxy_status >= 400 && result.proxy_status < 500;
            return !is_final || is_one_of(result.proxy_status, {408, 425, 429});
        }
        case ErrorCode::timed_out:
            return result.failure->stage == "connect" ||
                   (result.repeatable && result.failure->stage == "first_byte");
        case ErrorCode::connection_lost:
            return result.head == nullptr && (result.nothing_sent || result.repeatable);
        default:
            return false;
    }
}

std::optional<milliseconds> delay_before_retry(const RetryPolicy& policy, unsigned tries,
                                               const ResponseHead* head, std::uint32_t random) {
    const double fraction = static_cast<double>(random) / 4294967296.0;
    if (head != nullptr) {
        if (const auto asked = retry_after(*head)) {
            if (*asked > policy.max_retry_after) return std::nullopt;
            // Spreads the retries of clients that received the same delay.
            constexpr double spread_ms = 250;
            return *asked + milliseconds(static_cast<milliseconds::rep>(fraction * spread_ms));
        }
    }
    constexpr unsigned largest_shift = 20;
    const double doubled = static_cast<double>(policy.first_backoff.count()) *
                           static_cast<double>(1U << std::min(tries - 1, largest_shift));
    const double max_delay = static_cast<double>(policy.max_backoff.count());
    return milliseconds(static_cast<milliseconds::rep>(fraction * std::min(doubled, max_delay)));
}

}  // namespace polymux::transport
