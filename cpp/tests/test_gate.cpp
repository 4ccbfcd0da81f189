#include <doctest/doctest.h>

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "polymux/server/gate.hpp"

using namespace polymux::server;
using polymux::http1::Field;

namespace {

Key key_of(std::string_view text) {
    Key key;
    REQUIRE(EVP_Digest(text.data(), text.size(), key.sha256.data(), nullptr, EVP_sha256(),
                       nullptr) == 1);
    return key;
}

struct Asked {
    GateRules rules = {};
    EndpointRules endpoint = {.scope = "chat", .methods = {"POST"}};
    std::vector<Field> fields = {{"host", "h"}, {"authorization", "Bearer key"}};
    std::string_view method = "POST";
    std::size_t target_bytes = 1;
    bool is_http_1_0 = false;
    std::string_view client_host = "127.0.0.1";
    bool has_keys = true;

    GateDecision decide(double now_s = 0) const {
        Key limited = key_of("limited");
        limited.scopes = {{"ocr"}};
        Key old = key_of("old");
        old.expires_at_s = 100;
        const KeyTable keys("", {}, {key_of("other"), key_of("key"), limited, old});
        return admit(rules, endpoint, has_keys ? &keys : nullptr,
                     {.method = method,
                      .target_bytes = target_bytes,
                      .fields = fields,
                      .is_http_1_0 = is_http_1_0,
                      .client_host = client_host,
                      .server_host = "127.0.0.1"},
                     now_s);
    }
    /// 0 if the request is admitted.
    int status(double now_s = 0) const {
        const GateDecision decision = decide(now_s);
        const auto* const refusal = std::get_if<GateRefusal>(&decision);
        return refusal == nullptr ? 0 : refusal->status;
    }
    int status_with(std::vector<Field> more) const {
        Asked asked = *this;
        asked.fields.insert(asked.fields.end(), more.begin(), more.end());
        return asked.status();
    }
    int status_of_host(std::string_view host) const {
        Asked asked = *this;
        asked.fields.front().value = host;
        return asked.status();
    }
    int status_of_authorization(std::string_view value) const {
        Asked asked = *this;
        asked.fields.back().value = value;
        return asked.status();
    }
};

}  // namespace

TEST_CASE("a valid key is found, and its length") {
    Asked asked;
    asked.fields.push_back({"content-length", "123456789012345678"});
    const GateDecision decision = asked.decide();
    const auto* const admission = std::get_if<Admission>(&decision);
    REQUIRE(admission != nullptr);
    CHECK(admission->key == 1);
    CHECK(admission->content_length_bytes == 123456789012345678);
    for (const auto* const length : {"", "-1", "+1", "1x", "1234567890123456789"}) {
        CHECK(Asked().status_with({{"content-length", length}}) == 400);
    }
}

TEST_CASE("keys") {
    const Asked asked;
    for (const auto* const value : {"bearer key", "BEARER key"}) {
        CHECK(asked.status_of_authorization(value) == 0);
    }
    for (const auto* const value : {"", "key", "Bearer", "Bearer ", "Bearer  key", "Bearer key ",
                                    "Bearer ke", "Bearer key\x80", "Token key", "Basic key"}) {
        CHECK(asked.status_of_authorization(value) == 401);
    }
    CHECK(asked.status_of_authorization("Bearer " + std::string(600, 'a')) == 401);
    CHECK(asked.status_of_authorization("Bearer limited") == 403);
    Asked without = asked;
    without.fields.pop_back();
    CHECK(without.status() == 401);
    Asked token = asked;
    token.endpoint.accepts_token = true;
    CHECK(token.status_of_authorization("token key") == 0);
    Asked any = asked;
    any.endpoint.scope = "";
    CHECK(any.status_of_authorization("Bearer limited") == 0);
    Asked old = asked;
    old.fields.back().value = "Bearer old";
    CHECK(old.status(99) == 0);
    CHECK(old.status(100) == 401);
    Asked unreadable = asked;
    unreadable.has_keys = false;
    CHECK(unreadable.status() == 503);
    unreadable.endpoint.is_public = true;
    CHECK(unreadable.status() == 0);
}

TEST_CASE("fields that may be repeated, and fields that may not") {
    const Asked asked;
    CHECK(asked.status_with({{"accept", "a"}, {"accept", "b"}, {"prefer", "c"}, {"prefer", "d"}}) ==
          0);
    for (const auto* const name : {"authorization", "host"}) {
        CHECK(asked.status_with({{name, "h"}}) == 400);
    }
    for (const auto* const name : {"content-length", "content-type", "expect", "idempotency-key",
                                   "origin", "range", "transfer-encoding"}) {
        CHECK(asked.status_with({{name, "1"}, {name, "1"}}) == 400);
    }
    CHECK(asked.status_with({{"transfer-encoding", "Chunked"}}) == 0);
    CHECK(asked.status_with({{"transfer-encoding", "gzip"}}) == 400);
    CHECK(asked.status_with({{"transfer-encoding", "chunked"}, {"content-length", "1"}}) == 400);
}

TEST_CASE("sizes") {
    Asked asked;
    asked.target_bytes = 8192;
    CHECK(asked.status() == 0);
    asked.target_bytes = 8193;
    CHECK(asked.status() == 414);
    const std::string large(std::size_t{64} << 10, 'a');
    CHECK(Asked().status_with({{"x", large}}) == 431);
    CHECK(Asked().status_with(std::vector<Field>(198, {"x", ""})) == 0);
    CHECK(Asked().status_with(std::vector<Field>(199, {"x", ""})) == 431);
}

TEST_CASE("hosts") {
    Asked asked;
    for (const auto* const host : {"a.b-c_d", "127.1.2.3:80", "[::1]:8080", "localhost:65535"}) {
        CHECK(asked.status_of_host(host) == 0);
    }
    for (const auto* const host :
         {"", ":80", "a b", "a:b", "a:123456", "a/b", "u@h", "[::1", "[]", "[::g]", "\xc3\xa4"}) {
        CHECK(asked.status_of_host(host) == 400);
    }
    asked.rules.is_loopback_only = true;
    for (const auto* const host : {"localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]:80"}) {
        CHECK(asked.status_of_host(host) == 0);
    }
    for (const auto* const host : {"h", "localhost.evil", "127.0.0.2", "[::2]"}) {
        CHECK(asked.status_of_host(host) == 421);
    }
    asked.rules.allowed_hosts = {"a.b", "c.d:81"};
    for (const auto* const host : {"A.b", "a.b:9", "c.d:81"})
        CHECK(asked.status_of_host(host) == 0);
    for (const auto* const host : {"c.d", "c.d:82", "localhost"}) {
        CHECK(asked.status_of_host(host) == 421);
    }
    asked.endpoint.accepts_any_address = true;
    for (const auto* const host : {"10.0.0.1", "10.0.0.1:80", "[fe80::1]:80"}) {
        CHECK(asked.status_of_host(host) == 0);
    }
    CHECK(asked.status_of_host("10.0.0.1.evil") == 421);
    Asked missing;
    missing.fields.erase(missing.fields.begin());
    CHECK(missing.status() == 400);
    missing.is_http_1_0 = true;
    CHECK(missing.status() == 0);
}

TEST_CASE("methods and origins") {
    Asked asked;
    asked.method = "GET";
    CHECK(asked.status() == 405);
    asked.endpoint.methods = {"POST", "GET"};
    asked.rules.allowed_origins = {"https://a.b"};
    for (const auto* const origin : {"https://a.b", "http://h", "HTTPS://H"}) {
        CHECK(asked.status_with({{"origin", origin}}) == 0);
    }
    for (const auto* const origin :
         {"http://a.b", "https://a.b:1", "https://A.b", "null", "", "http://h.evil", "ftp://h"}) {
        CHECK(asked.status_with({{"origin", origin}}) == 403);
    }
    asked.endpoint.is_public = true;
    CHECK(asked.status_with({{"origin", "null"}}) == 403);
}

TEST_CASE("endpoints that need no key from this machine") {
    Asked asked;
    asked.rules.is_loopback_only = true;
    asked.endpoint.is_loopback_public = true;
    asked.fields = {{"host", "localhost:80"}};
    CHECK(asked.status() == 0);
    for (const auto* const name : {"forwarded", "via", "x-forwarded", "x-forwarded-for",
                                   "x-real-ip", "x-original-host", "cf-connecting-ipv6"}) {
        CHECK(asked.status_with({{name, "1"}}) == 401);
    }
    CHECK(asked.status_with({{"x-forwardedness", "1"}}) == 0);
    Asked elsewhere = asked;
    elsewhere.client_host = "10.0.0.1";
    CHECK(elsewhere.status() == 401);
    Asked open = asked;
    open.rules.is_loopback_only = false;
    CHECK(open.status() == 401);
}

TEST_CASE("messages show no control characters") {
    Asked asked;
    asked.fields.push_back({"origin", "http://\x1b[31m\xff'"});
    const GateDecision decision = asked.decide();
    const std::string& message = std::get<GateRefusal>(decision).message;
    for (const char letter : message) CHECK((letter >= ' ' && letter <= '~'));
}

TEST_CASE("a table of keys knows when its file has changed") {
    std::string folder = (std::filesystem::temp_directory_path() / "keysXXXXXX").string();
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    const std::string path = folder + "/keys";
    const auto stamp = [&] {
        struct stat found{};
        REQUIRE(::stat(path.c_str(), &found) == 0);
        return FileStamp{.modified_ns = std::int64_t{found.st_mtim.tv_sec} * 1'000'000'000 +
                                        found.st_mtim.tv_nsec,
                         .size_bytes = found.st_size,
                         .inode = found.st_ino,
                         .mode = found.st_mode};
    };
    CHECK(KeyTable(path, {}, {}).is_current());
    std::ofstream(path) << "a";
    CHECK(!KeyTable(path, {}, {}).is_current());
    const KeyTable table(path, stamp(), {});
    CHECK(table.is_current());
    std::ofstream(path, std::ios::app) << "b";
    CHECK(!table.is_current());
    std::filesystem::remove_all(folder);
    CHECK(!table.is_current());
}
