#include <doctest/doctest.h>

#include <csignal>
#include <memory>
#include <set>
#include <string>

#include "polymux/result.hpp"
#include "support.hpp"

using polymux::Error;
using polymux::ErrorCode;
using polymux::Result;

TEST_SUITE("result") {
    TEST_CASE("every error code has a separate name, as documented") {
        std::set<std::string> names;
        for (int value = 0; value <= static_cast<int>(ErrorCode::internal); ++value) {
            names.emplace(to_string(static_cast<ErrorCode>(value)));
        }
        CHECK(names == std::set<std::string>{"invalid_argument",
                                             "unsupported_encoding",
                                             "input_not_found",
                                             "input_unreadable",
                                             "input_changed",
                                             "unsupported_media",
                                             "undecodable",
                                             "no_audio",
                                             "encrypted",
                                             "limit_exceeded",
                                             "output_exists",
                                             "output_refused",
                                             "output_failed",
                                             "cancelled",
                                             "callback_failed",
                                             "encoder_failed",
                                             "url_refused",
                                             "connect_failed",
                                             "tls_failed",
                                             "connection_lost",
                                             "timed_out",
                                             "answer_too_large",
                                             "undecodable_answer",
                                             "out_of_memory",
                                             "internal"});
        CHECK(to_string(ErrorCode::no_audio) == "no_audio");
        CHECK(to_string(ErrorCode::internal) == "internal");
    }

    TEST_CASE("a value outside the enumeration still has a printable name") {
        CHECK(to_string(static_cast<ErrorCode>(200)) == "internal");
    }

    TEST_CASE("a result holds its value") {
        Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
        REQUIRE(result);
        CHECK(**result == 5);
        const std::unique_ptr<int> taken = *std::move(result);
        CHECK(*taken == 5);
    }

    TEST_CASE("a result holds its complete error") {
        const Result<int> result = Error{.code = ErrorCode::undecodable,
                                         .message = "it is broken",
                                         .input_name = "talk.mp4",
                                         .position_s = 1.5,
                                         .ffmpeg_code = -22,
                                         .ffmpeg_text = "Invalid argument",
                                         .os_errno = 5,
                                         .stage = "send"};
        REQUIRE_FALSE(result);
        CHECK_FALSE(result.has_value());
        CHECK(result.error().code == ErrorCode::undecodable);
        CHECK(result.error().message == "it is broken");
        CHECK(result.error().input_name == "talk.mp4");
        CHECK(result.error().position_s == 1.5);
        CHECK(result.error().ffmpeg_code == -22);
        CHECK(result.error().ffmpeg_text == "Invalid argument");
        CHECK(result.error().os_errno == 5);
        CHECK(result.error().stage == "send");
    }

    TEST_CASE("calls are chained up to the first failure") {
        const auto half = [](int value) -> Result<int> {
            if (value % 2 == 0) return value / 2;
            return Error{.code = ErrorCode::invalid_argument, .message = "odd"};
        };
        const auto text = [](int value) { return std::to_string(value); };
        CHECK(Result<int>(12).and_then(half).map(text).value_or("none") == "6");
        CHECK(Result<int>(6).and_then(half).and_then(half).map(text).value_or("none") == "none");
        CHECK(Result<int>(3).and_then(half).error().message == "odd");
        const Result<int> kept = 8;
        CHECK(*kept.and_then(half).map(text) == "4");
        CHECK(kept.value_or(0) == 8);
        const auto same = [](std::unique_ptr<int> value) { return value; };
        CHECK(**Result<std::unique_ptr<int>>(std::make_unique<int>(5)).map(same) == 5);
        const Result<void> success;
        CHECK(*success.and_then([] { return Result<int>(1); }) == 1);
    }

#ifndef NDEBUG
    TEST_CASE("debug builds assert before an access to what is missing") {
        constexpr int aborted = 128 + SIGABRT;
        CHECK(polymux::testing::run_in_child([] {
                  std::signal(SIGABRT, SIG_DFL);  // Not doctest's handler, which prints.
                  const Result<int> failed = Error{.code = ErrorCode::internal, .message = "none"};
                  return *failed;
              }) == aborted);
        CHECK(polymux::testing::run_in_child([] {
                  std::signal(SIGABRT, SIG_DFL);
                  const Result<int> fine = 1;
                  return static_cast<int>(fine.error().code);
              }) == aborted);
    }
#endif

    TEST_CASE("success without a value") {
        const Result<void> success;
        CHECK(success);
        const Result<void> failure = Error{.code = ErrorCode::cancelled, .message = "stopped"};
        REQUIRE_FALSE(failure);
        CHECK(failure.error().code == ErrorCode::cancelled);
    }
}
