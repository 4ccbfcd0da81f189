#include <doctest/doctest.h>

#include <chrono>
#include <ctime>
#include <string>

#include "transport/retry.hpp"

using namespace polymux;
using namespace polymux::transport;
using namespace std::chrono_literals;

namespace {

ResponseHead head(int status, std::string fields = {}) {
    return {.status = status, .fields = std::move(fields)};
}

TryResult answered(const ResponseHead& head, bool repeatable = false) {
    return {.head = &head, .repeatable = repeatable};
}

std::optional<milliseconds> asked(const std::string& fields) {
    return retry_after(head(429, fields));
}

}  // namespace

TEST_SUITE("retry") {
    TEST_CASE("a server's requested delay, in all forms") {
        CHECK(asked("Retry-After: 2\r\n") == 2000ms);
        CHECK(asked("retry-after: 0\r\n") == 0ms);
        CHECK(asked("RETRY-AFTER:   1.5\r\n") == 1500ms);
        CHECK(asked("retry-after-ms: 250\r\nRetry-After: 9\r\n") == 250ms);
        CHECK(asked("Date: Sun, 06 Nov 1994 08:49:30 GMT\r\n"
                    "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n") == 7000ms);
        CHECK(asked("Date: Sun, 06 Nov 1994 08:49:30 GMT\r\n"
                    "Retry-After: Sunday, 06-Nov-94 08:49:37 GMT\r\n") == 7000ms);
        CHECK(asked("Date: Sun, 06 Nov 1994 08:49:30 GMT\r\n"
                    "Retry-After: Sun Nov  6 08:49:37 1994\r\n") == 7000ms);
        CHECK(asked("Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                    "Retry-After: Sun, 06 Nov 1994 08:49:30 GMT\r\n") == 0ms);
        CHECK(asked("Retry-After: 1000000000000000000000\r\n") == 1'000'000'000'000ms);
    }

    TEST_CASE("invalid values are ignored") {
        for (const std::string text : {"", "-1", "+1", "1e3", "0x10", "NaN", "inf", "soon", "1 2",
                                       "1,5", "1.5.2", "Thu, 99 Foo 2026 99:99:99 GMT"}) {
            CAPTURE(text);
            CHECK_FALSE(asked("Retry-After: " + text + "\r\n").has_value());
        }
        CHECK_FALSE(asked("X-Retry-After: 5\r\n").has_value());
        CHECK_FALSE(asked("").has_value());
        CHECK_FALSE(asked("Retry-After: " + std::string(100'000, '9') + "x\r\n").has_value());
    }

    TEST_CASE("the server decides with x-should-retry") {
        CHECK(should_retry(answered(head(500, "X-Should-Retry: true\r\n"))));
        CHECK(should_retry(answered(head(409, "x-should-retry: true\r\n"))));
        CHECK_FALSE(should_retry(answered(head(429, "x-should-retry: false\r\n"))));
        CHECK_FALSE(should_retry(answered(head(500, "x-should-retry: false\r\n"), true)));
        CHECK_FALSE(should_retry(answered(head(500, "x-should-retry: maybe\r\n"))));
        CHECK_FALSE(should_retry(answered(head(200, "x-should-retry: true\r\n"))));
    }

    TEST_CASE("only failures that may succeed later are retried") {
        CHECK(should_retry(answered(head(429))));
        CHECK(should_retry(answered(head(503))));
        for (const int status : {200, 301, 400, 401, 404, 409, 422, 501, 505, 507}) {
            CAPTURE(status);
            CHECK_FALSE(should_retry(answered(head(status), true)));
        }
        for (const int status : {408, 425, 500, 502, 504, 529}) {
            CAPTURE(status);
            CHECK_FALSE(should_retry(answered(head(status))));
            CHECK(should_retry(answered(head(status), true)));
        }
        const Error lost{.code = ErrorCode::connection_lost, .message = "gone"};
        CHECK_FALSE(should_retry({.failure = &lost}));
        CHECK(should_retry({.failure = &lost, .nothing_sent = true}));
        CHECK(should_retry({.failure = &lost, .repeatable = true}));
        const ResponseHead begun = head(200);
        CHECK_FALSE(should_retry({.failure = &lost, .head = &begun, .repeatable = true}));
        const Error refused{.code = ErrorCode::connect_failed, .message = "nobody"};
        CHECK(should_retry({.failure = &refused}));
        const Error untrusted{.code = ErrorCode::tls_failed, .message = "who?"};
        CHECK_FALSE(should_retry({.failure = &untrusted, .repeatable = true}));
        const Error late{.code = ErrorCode::timed_out, .message = "late", .stage = "total"};
        CHECK_FALSE(should_retry({.failure = &late, .repeatable = true}));
    }

    TEST_CASE("the delay is random below a bound that doubles, or the server's requested one") {
        const RetryPolicy policy{.first_backoff = 500ms, .max_backoff = 8000ms};
        constexpr std::uint32_t most = 0xFFFFFFFF;
        CHECK(delay_before_retry(policy, 1, nullptr, 0) == 0ms);
        CHECK(delay_before_retry(policy, 1, nullptr, most) == 499ms);
        CHECK(delay_before_retry(policy, 3, nullptr, most) == 1999ms);
        CHECK(delay_before_retry(policy, 60, nullptr, most) == 7999ms);
        const ResponseHead two = head(503, "Retry-After: 2\r\n");
        CHECK(delay_before_retry(policy, 1, &two, 0) == 2000ms);
        CHECK(delay_before_retry(policy, 1, &two, most) <= 2250ms);
        const ResponseHead hour = head(503, "Retry-After: 3600\r\n");
        CHECK_FALSE(delay_before_retry(policy, 1, &hour, 0).has_value());
    }

    TEST_CASE("a field is found by its name alone") {
        const ResponseHead found = head(200, "A: 1\r\nAB: 2\r\nB:\t3 \r\nempty:\r\nB: 4\r\n");
        CHECK(found.field("a") == "1");
        CHECK(found.field("AB") == "2");
        CHECK(found.field("b") == "3");
        CHECK(found.field("empty").empty());
        CHECK(found.field("c").empty());
    }
}
