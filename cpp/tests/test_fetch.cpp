// The fetch itself, with a replaced resolver. Its whole result is checked, it is called once for
// each hop, and a deadline or a cancellation ends the wait for it.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "fetch_support.hpp"
#include "polymux/transport/fetch.hpp"
#include "transport/certificates.hpp"
#include "transport/look_up.hpp"

using namespace polymux;
using namespace polymux::transport;
using namespace polymux::testing;
using std::chrono::milliseconds;

TEST_CASE("a name is fetched from the resolver's address") {
    const Server server({plain});
    std::string asked;
    const auto resolver = [&asked](const std::string& name, int call) {
        asked = name + std::to_string(call);
        return Result(addresses({"127.0.0.1"}));
    };
    const auto got = run(url_of(server.port()), options_for(server.port(), resolver));
    REQUIRE(got.fetched.has_value());
    CHECK(got.body == "hello");
    CHECK(got.fetched->status == 200);
    CHECK(got.fetched->body_bytes == 5);
    CHECK(got.fetched->received_bytes == 5);
    CHECK(asked == "media.example0");
}

TEST_CASE("one answer that is not public refuses all of them") {
    const Server server({plain});
    for (const auto& answer :
         {addresses({"127.0.0.1", "10.0.0.1"}), addresses({"10.0.0.1", "127.0.0.1"}),
          addresses({"127.0.0.1", "::1"}), addresses({"::ffff:10.0.0.1", "127.0.0.1"}),
          addresses({"64:ff9b::a00:1"}), addresses({"169.254.169.254"})}) {
        const auto resolver = [&](const std::string&, int) { return Result(answer); };
        const auto got = run(url_of(server.port()), options_for(server.port(), resolver));
        REQUIRE_FALSE(got.fetched.has_value());
        CHECK(got.fetched.error().code == ErrorCode::url_refused);
        CHECK(got.fetched.error().message.find("10.0") == std::string::npos);
    }
    CHECK(server.connections() == 0);
}

TEST_CASE("a destination is checked like a fetch, without connecting") {
    const Server server({plain});
    std::vector<Address> answer = addresses({"127.0.0.1", "127.0.0.2"});
    const auto resolver = [&](const std::string&, int) { return Result(answer); };
    const FetchOptions options = options_for(server.port(), resolver);
    const CancelToken cancel;
    const auto found = resolve_destination(url_of(server.port()), options, cancel);
    REQUIRE(found.has_value());
    CHECK(found->host == "media.example");
    CHECK(found->port == server.port());
    CHECK(found->addresses == answer);
    answer.push_back(addresses({"10.0.0.1"}).front());
    for (const std::string& url :
         {url_of(server.port()), std::string("http://127.0.0.1:1/"), std::string("http://[::1]/"),
          std::string("file:///etc/passwd"), std::string("http://a:b@media.example/")}) {
        const auto refused = resolve_destination(url, options, cancel);
        REQUIRE_FALSE(refused.has_value());
        CHECK(refused.error().code == ErrorCode::url_refused);
    }
    CHECK(server.connections() == 0);
}

TEST_CASE("each redirect is looked up and judged anew") {
    const Server server({"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n", plain});
    const auto rebinding = [](const std::string&, int call) {
        return Result(addresses({call == 0 ? "127.0.0.1" : "10.0.0.1"}));
    };
    const auto got = run(url_of(server.port()), options_for(server.port(), rebinding));
    REQUIRE_FALSE(got.fetched.has_value());
    CHECK(got.fetched.error().code == ErrorCode::url_refused);
    CHECK(got.fetched.error().message.starts_with("redirect 1 is refused: "));
    CHECK(got.fetched.error().stage.empty());
    CHECK(server.connections() == 1);
}

TEST_CASE("too many redirects are reported with the limit") {
    const Server server({"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n", plain});
    const auto resolver = [](const std::string&, int) { return Result(addresses({"127.0.0.1"})); };
    FetchOptions options = options_for(server.port(), resolver);
    options.limits.redirects = 0;
    const auto got = run(url_of(server.port()), options);
    REQUIRE_FALSE(got.fetched.has_value());
    CHECK(got.fetched.error().code == ErrorCode::url_refused);
    CHECK(got.fetched.error().stage == "redirects");
    CHECK(server.connections() == 1);
}

TEST_CASE("thousands of addresses: all are judged, the first of them are tried") {
    const Server server({plain});
    std::vector<Address> many(2000, parse_address("127.0.0.1").value());
    const auto resolver = [&many](const std::string&, int) { return Result(many); };
    const FetchOptions options = options_for(server.port(), resolver);
    CHECK(run(url_of(server.port()), options).fetched.has_value());
    many.back() = parse_address("10.0.0.1").value();
    CHECK_FALSE(run(url_of(server.port()), options).fetched.has_value());
}

TEST_CASE("a resolver that fails, throws or has nothing") {
    const Resolver failing = [](const std::string&, int) {
        return Result<std::vector<Address>>(
            Error{.code = ErrorCode::connect_failed, .message = "no", .stage = "resolve"});
    };
    const Resolver throwing = [](const std::string&, int) -> Result<std::vector<Address>> {
        throw std::runtime_error("no");
    };
    const Resolver empty = [](const std::string&, int) { return Result(addresses({})); };
    for (const Resolver& resolver : {failing, throwing, empty}) {
        const auto got = run(url_of(80), options_for(80, resolver));
        REQUIRE_FALSE(got.fetched.has_value());
        CHECK(got.fetched.error().code == ErrorCode::connect_failed);
        CHECK(got.fetched.error().stage == "resolve");
    }
}

TEST_CASE("a silent resolver holds nobody, and those left behind are counted") {
    const auto gate = std::make_shared<std::atomic<bool>>(false);
    const auto inside = std::make_shared<std::atomic<int>>(0);
    const auto silent = [gate, inside](const std::string&, int) {
        ++*inside;
        while (!*gate) std::this_thread::sleep_for(milliseconds(5));
        --*inside;
        return Result(addresses({"127.0.0.1"}));
    };
    FetchOptions options = options_for(80, silent);
    options.limits.connect_ms = 50;
    auto got = run(url_of(80), options);
    REQUIRE_FALSE(got.fetched.has_value());
    CHECK(got.fetched.error().code == ErrorCode::timed_out);
    CHECK(got.fetched.error().stage == "connect");
    CHECK(got.seconds < 5);

    options.limits.connect_ms = 60'000;
    const CancelToken cancel;
    std::thread canceller([&cancel] {
        std::this_thread::sleep_for(milliseconds(100));
        cancel.cancel();
    });
    got = run(url_of(80), options, cancel);
    canceller.join();
    REQUIRE_FALSE(got.fetched.has_value());
    CHECK(got.fetched.error().code == ErrorCode::cancelled);
    CHECK(got.seconds < 5);

    options.limits.connect_ms = 1;
    for (int fetches = 2; fetches < max_look_ups; ++fetches) run(url_of(80), options);
    got = run(url_of(80), options);
    CHECK(got.fetched.error().code == ErrorCode::connect_failed);
    *gate = true;
    while (*inside > 0) std::this_thread::sleep_for(milliseconds(1));
}

#ifndef __SANITIZE_THREAD__  // ThreadSanitizer does not support threads after such a fork.
TEST_CASE("a forked child has none of its parent's running lookups") {
    const auto gate = std::make_shared<std::atomic<bool>>(false);
    const auto inside = std::make_shared<std::atomic<int>>(0);
    const auto silent = [gate, inside](const std::string&, int) {
        ++*inside;
        while (!*gate) std::this_thread::sleep_for(milliseconds(1));
        --*inside;
        return Result(addresses({"127.0.0.1"}));
    };
    FetchOptions options = options_for(80, silent);
    options.limits.connect_ms = 1;
    const auto failure = [&options] { return run(url_of(80), options).fetched.error().code; };
    for (int fetches = 0; fetches < max_look_ups; ++fetches) {
        CHECK(failure() == ErrorCode::timed_out);
    }
    CHECK(failure() == ErrorCode::connect_failed);
    const pid_t child = fork();
    if (child == 0) {
        bool good = true;
        for (int fetches = 0; fetches < max_look_ups; ++fetches) {
            good = good && failure() == ErrorCode::timed_out;
        }
        _exit(good && failure() == ErrorCode::connect_failed ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(failure() == ErrorCode::connect_failed);
    *gate = true;
    while (*inside > 0) std::this_thread::sleep_for(milliseconds(1));
}
#endif

TEST_CASE("a token set in advance, a total of nothing, a callback that stops") {
    const CancelToken cancel;
    cancel.cancel();
    CHECK(run("http://media.example/", {}, cancel).fetched.error().code == ErrorCode::cancelled);
    const auto ignore = [](std::span<const std::byte>) -> Result<void> { return {}; };
    const auto no = [](const FetchProgress&) -> Result<void> {
        return Error{.code = ErrorCode::callback_failed, .message = "no"};
    };
    CHECK(fetch("http://media.example/", {}, ignore, no, {}).error().code ==
          ErrorCode::callback_failed);
}

TEST_CASE("a sink's failure ends the fetch unchanged") {
    const Server server({plain});
    const auto resolver = [](const std::string&, int) { return Result(addresses({"127.0.0.1"})); };
    const auto full = [](std::span<const std::byte>) -> Result<void> {
        return Error{.code = ErrorCode::output_failed, .message = "the disk is full"};
    };
    const auto turn = [](const FetchProgress&) -> Result<void> { return {}; };
    const auto got =
        fetch(url_of(server.port()), options_for(server.port(), resolver), full, turn, {});
    REQUIRE_FALSE(got.has_value());
    CHECK(got.error().code == ErrorCode::output_failed);
    CHECK(got.error().message == "the disk is full");
}

TEST_CASE("limits out of range are named") {
    FetchOptions options;
    options.limits.total_ms = 0;
    CHECK(run("http://media.example/", options).fetched.error().message.find("total_ms") !=
          std::string::npos);
    options.limits = {.redirects = 21};
    CHECK(run("http://media.example/", options).fetched.error().code ==
          ErrorCode::invalid_argument);
    CHECK(validate(FetchLimits{}).has_value());
}

TEST_CASE("the configured certificate bundle must be a file") {
    const auto missing = certificate_bundle("/nonexistent/bundle.pem");
    REQUIRE_FALSE(missing.has_value());
    CHECK(missing.error().code == ErrorCode::tls_failed);
    CHECK_FALSE(certificate_bundle("/").has_value());
    FetchOptions options;
    options.certificate_bundle = "/nonexistent/bundle.pem";
    options.resolver = [](const std::string&, int) { return Result(addresses({"127.0.0.1"})); };
    CHECK(run("https://media.example/", options).fetched.error().code == ErrorCode::tls_failed);
}
