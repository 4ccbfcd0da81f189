// Requests that the HTTP server refuses without its application.
#include <doctest/doctest.h>

#include <openssl/evp.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "front_support.hpp"
#include "polymux/server/front.hpp"

using namespace polymux::server;
using namespace polymux::testing;

namespace {

/// Returns rules with the key "key". At `path`, there must be no file.
std::shared_ptr<const FrontRules> chat_rules(const std::string& path = "/nowhere") {
    Key key;
    REQUIRE(EVP_Digest("key", 3, key.sha256.data(), nullptr, EVP_sha256(), nullptr) == 1);
    FrontRules rules;
    rules.gate = std::make_shared<GateRules>();
    rules.keys = std::make_shared<KeyTable>(path, std::nullopt, std::vector{key});
    rules.endpoints = {{.path = "/chat",
                        .rules = std::make_shared<EndpointRules>(
                            EndpointRules{.scope = "chat", .methods = {"POST", "HEAD"}})}};
    return std::make_shared<FrontRules>(std::move(rules));
}

std::string chat_request(std::string_view key, std::string_view method = "POST",
                         std::string_view path = "/chat") {
    return std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: h\r\n" +
           "X-Request-Id: mine\r\nAuthorization: Bearer " + std::string(key) +
           "\r\nContent-Length: 2\r\n\r\n{}";
}

}  // namespace

TEST_CASE("the application does not get what the rules refuse") {
    std::atomic<int> requests = 0;
    RunningFront running{[&](Event& event) {
        if (event.kind != Event::Kind::request) return;
        ++requests;
        answer(*event.exchange, "ok");
    }};
    running.front().publish(chat_rules());
    Client client(running.port());
    client.send(chat_request("wrong"));
    const std::string refused = client.receive_until("}");
    CHECK(refused.starts_with("HTTP/1.1 401 Unauthorized\r\n"));
    CHECK(refused.find("\r\nWWW-Authenticate: Bearer") != std::string::npos);
    CHECK(refused.find("\r\nX-Request-Id: mine\r\n") != std::string::npos);
    CHECK(refused.find("\"code\":\"unauthorized\"") != std::string::npos);
    CHECK(requests == 0);
    // The connection continues, also for several requests at once.
    client.send(chat_request("wrong") + chat_request("key") + chat_request("key", "PUT"));
    CHECK(client.receive_until("}").starts_with("HTTP/1.1 401"));
    CHECK(client.receive_until("ok").starts_with("HTTP/1.1 200"));
    const std::string method = client.receive_until("}");
    CHECK(method.starts_with("HTTP/1.1 405"));
    CHECK(method.find("\r\nAllow: POST, HEAD\r\n") != std::string::npos);
    CHECK(requests == 1);
    // The response to HEAD has no body, and other paths are the application's.
    client.send(chat_request("wrong", "HEAD") + chat_request("wrong", "POST", "/chat/"));
    CHECK(client.receive_until("\r\n\r\n").starts_with("HTTP/1.1 401"));
    CHECK(client.receive_until("ok").starts_with("HTTP/1.1 200"));
    client.send(chat_request("wrong", "POST", "/chat?a=b"));
    CHECK(client.receive_until("}").starts_with("HTTP/1.1 401"));
    CHECK(requests == 2);
    running.front().publish(nullptr);
    client.send(chat_request("wrong"));
    CHECK(client.receive_until("ok").starts_with("HTTP/1.1 200"));
}

TEST_CASE("a refusal before the end of the body ends the connection") {
    RunningFront running{[](Event& event) { CHECK(event.kind != Event::Kind::request); }};
    running.front().publish(chat_rules());
    Client client(running.port());
    client.send("POST /chat HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n{");
    const std::string all = client.receive_all();
    CHECK(all.starts_with("HTTP/1.1 401"));
    CHECK(all.find("\r\nConnection: close\r\n") != std::string::npos);
    Client expecting(running.port());
    expecting.send(
        "POST /chat HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n");
    CHECK(expecting.receive_all().starts_with("HTTP/1.1 401"));
}

TEST_CASE("the application decides while the file of keys has changed") {
    RunningFront running{[](Event& event) {
        if (event.kind == Event::Kind::request) answer(*event.exchange, "ok");
    }};
    running.front().publish(chat_rules("/dev/null"));  // It exists now.
    Client client(running.port());
    client.send(chat_request("wrong"));
    CHECK(client.receive_until("ok").starts_with("HTTP/1.1 200"));
    client.send(chat_request("wrong", "PUT"));
    CHECK(client.receive_until("}").starts_with("HTTP/1.1 405"));
}

TEST_CASE("every refused request is counted, and a flood is described in part") {
    std::atomic<int> announced = 0;
    RunningFront running{[&](Event& event) {
        if (event.kind == Event::Kind::refused) ++announced;
    }};
    running.front().publish(chat_rules());
    constexpr std::size_t total = 1'000;
    Client client(running.port());
    // Without bodies, because a refusal before the end of a body would end the connection.
    const std::string request = "POST /chat HTTP/1.1\r\nHost: h\r\nX-Request-Id: mine\r\n\r\n";
    std::string flood;
    for (std::size_t i = 0; i < total; ++i) flood += request;
    std::thread sender([&] { client.send(flood); });
    for (std::size_t i = 0; i < total; ++i) REQUIRE(!client.receive_until("}").empty());
    sender.join();
    REQUIRE(comes_true([&] { return announced == 1; }));
    RefusedRequests refused;
    running.front().take_refused(refused);
    std::uint64_t count = refused.requests.size();
    for (const RefusedCount& other : refused.others) {
        CHECK(other.path == "/chat");
        CHECK(other.status == 401);
        count += other.count;
    }
    CHECK(count == total);
    REQUIRE(!refused.requests.empty());
    CHECK(refused.requests.size() < total);
    CHECK(refused.requests.front().path == "/chat");
    CHECK(refused.requests.front().method == "POST");
    CHECK(refused.requests.front().request_id == "mine");
    // The next one is announced again.
    client.send(request);
    REQUIRE(comes_true([&] { return announced == 2; }));
    RefusedRequests next;
    running.front().take_refused(next);
    CHECK(next.requests.size() == 1);
}
