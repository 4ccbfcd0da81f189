// Checks of a URL before any lookup or connection.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "transport/checked_url.hpp"
#include "transport/url_text.hpp"

using namespace polymux;
using namespace polymux::transport;

namespace {

std::string outcome(std::string_view text, const FetchPolicy& policy = {}) {
    const auto url = check_url(text, policy);
    if (url) return url->text;
    CHECK(url.error().code == ErrorCode::url_refused);
    CHECK(url.error().message.starts_with("the URL is refused: "));
    CHECK(url.error().message.find("127") == std::string::npos);
    CHECK(url.error().input_name.empty());
    return "refused";
}

FetchPolicy allowing(std::initializer_list<std::string_view> hosts) {
    FetchPolicy policy;
    for (const std::string_view host : hosts) {
        const auto parsed = parse_allowed_host(host);
        REQUIRE(parsed.has_value());
        policy.allowed_hosts.push_back(*parsed);
    }
    return policy;
}

}  // namespace

TEST_CASE("public URLs pass and are normalized") {
    CHECK(outcome("http://media.example/a?b=c") == "http://media.example/a?b=c");
    CHECK(outcome("HTTPS://MEDIA.Example:443/A") == "https://media.example:443/A");
    CHECK(outcome("http://media.example") == "http://media.example/");
    CHECK(outcome("http://media.example./") == "http://media.example/");
    CHECK(outcome("http://media.example?q=1") == "http://media.example/?q=1");
    CHECK(outcome("http://media.example/a#b") == "http://media.example/a");
    CHECK(outcome("http://media.example/a#/@b") == "http://media.example/a");
    CHECK(outcome("http://media.example/@user/a") == "http://media.example/@user/a");
    CHECK(outcome("http://xn--mnchen-3ya.example/") == "http://xn--mnchen-3ya.example/");
    CHECK(outcome("http://m\u00fcnchen.example/") == "http://xn--mnchen-3ya.example/");
    CHECK(outcome("http://media.example/\u65e5\u672c?x=\u00e9") ==
          "http://media.example/%e6%97%a5%e6%9c%ac?x=%c3%a9");
    CHECK(outcome("http://a_b.media.example:80/%00") == "http://a_b.media.example:80/%00");
}

TEST_CASE("addresses of this machine and its network, however they are written") {
    for (const std::string_view host : {"127.0.0.1",
                                        "127.1",
                                        "127.0.1",
                                        "127.255.255.254",
                                        "2130706433",
                                        "0x7f000001",
                                        "0x7f.1",
                                        "0x7F.0.0.1",
                                        "017700000001",
                                        "0177.0.0.1",
                                        "127.00.00.01",
                                        "0",
                                        "0.0.0.0",
                                        "0.1.2.3",
                                        "[::1]",
                                        "[0:0:0:0:0:0:0:1]",
                                        "[::]",
                                        "[::1%25lo]",
                                        "[fe80::1%25eth0]",
                                        "[::ffff:127.0.0.1]",
                                        "[::ffff:7f00:1]",
                                        "[::127.0.0.1]",
                                        "[64:ff9b::7f00:1]",
                                        "[64:ff9b:1::1]",
                                        "[2002:7f00:1::]",
                                        "[fe80::1]",
                                        "[fc00::1]",
                                        "[fd00:ec2::254]",
                                        "[fec0::1]",
                                        "[ff02::1]",
                                        "10.0.0.1",
                                        "169.254.169.254",
                                        "100.100.100.200",
                                        "168.63.129.16",
                                        "127.0.0.1.",
                                        "2130706433.",
                                        "0x7f.0.0.0x1.",
                                        "10.1",
                                        "256.256.256.256",
                                        "1.2.3.4.5",
                                        "media.0x7f",
                                        "\u2460\u2461\u2466.\u24ea.\u24ea.\u2460",
                                        "127\u30020\u30020\u30021",
                                        "\u24dbocalhost",
                                        "media\uff0eexample",
                                        "10\uf3bc0\uff0e0\uff0e1",
                                        "127.0.0%2e1",
                                        "local%68ost",
                                        "[127.0.0.1]",
                                        "[media.example]"}) {
        CHECK_MESSAGE(outcome("http://" + std::string(host) + "/") == "refused", host);
        CHECK_MESSAGE(outcome("https://" + std::string(host)) == "refused", host);
    }
}

TEST_CASE("names of the local network are not looked up") {
    for (const std::string_view host :
         {"localhost", "LOCALHOST", "localhost.", "a.localhost", "localhost.localdomain",
          "ip6-localhost", "metadata.google.internal", "metadata", "printer.local", "nas.home.arpa",
          "hidden.onion"}) {
        CHECK_MESSAGE(outcome("http://" + std::string(host) + "/") == "refused", host);
    }
}

TEST_CASE("forms that parsers read differently") {
    for (const std::string_view text : {
             "",
             "null",
             "media.example",
             "//media.example/",
             "http:media.example",
             "http:/media.example",
             "http:///media.example/",
             "http:////media.example/",
             "http://",
             "http://?",
             "http://#",
             "http://:80/",
             "http://media.example:/",
             "http://u@media.example/",
             "http://u:p@media.example/",
             "http://@media.example/",
             "http://media.example@127.0.0.1/",
             "http://media.example#@127.0.0.1/",
             "http://media.example?@127.0.0.1/",
             "http://media.example\\@127.0.0.1/",
             "http:\\\\media.example\\",
             "http://media.example/\\a",
             " http://media.example/",
             "http://media.example/ ",
             "http://media.example/a b",
             "http://media\t.example/",
             "ht\ttp://media.example/",
             "http://media.example/\r\nHost:",
             "http://media.example/\n",
             "http://media.example/\x7f",
             "http://media.example/\u2028",
             "http://me\u00addia.example/",
             "http://media.example/\u00ad",
             "http://media.example/\u200b",
             "http://media.example/\u202ea",
             "http://media.example/\ufeff",
             "http://media.example/\xff",
             "http://media.example/\xc0\xaf",
             "http://media.example/\xed\xa0\x80",
             "http://media.example/%",
             "http://media.example/%2",
             "http://media.example/%zz",
             "http://media..example/",
             "http://.media.example/",
             "http://media.example../",
             "http://me!dia.example/",
             "http://media.example,b.example/",
             "http://[::1/",
             "http://::1/",
             "http://[]/",
         }) {
        CHECK_MESSAGE(outcome(text) == "refused", text);
    }
    CHECK(outcome(std::string("http://media.example/\0a", 23)) == "refused");
    CHECK(outcome("http://" + std::string(64, 'a') + ".example/") == "refused");
    CHECK(outcome("http://media.example/" + std::string(max_url_bytes, 'a')) == "refused");
    CHECK(outcome("http://" + std::string(5000, '@') + "/") == "refused");
}

TEST_CASE("schemes other than http and https") {
    for (const std::string_view scheme :
         {"file",  "FILE",   "ftp",       "gopher", "dict",
          "tftp",  "ldap",   "smb",       "scp",    "sftp",
          "imap",  "telnet", "rtsp",      "rtmp",   "mms",
          "srt",   "ws",     "wss",       "data",   "javascript",
          "about", "httpx",  "http+unix", "h2",     "view-source:http"}) {
        CHECK_MESSAGE(outcome(std::string(scheme) + "://media.example/") == "refused", scheme);
        CHECK_MESSAGE(outcome(std::string(scheme) + ":media.example") == "refused", scheme);
    }
}

TEST_CASE("ports on the list, and those alone") {
    for (const std::string_view port :
         {":0", ":22", ":25", ":6379", ":8080", ":65536", ":99999999999999999999", ":-1", ":+80",
          ":80a", ": 80", ":0x50"}) {
        CHECK_MESSAGE(outcome("http://media.example" + std::string(port) + "/") == "refused", port);
    }
    CHECK(outcome("http://media.example:443/") == "http://media.example:443/");
    FetchPolicy policy;
    policy.allowed_ports = {8080};
    CHECK(outcome("http://media.example:8080/", policy) == "http://media.example:8080/");
    CHECK(outcome("http://media.example/", policy) == "refused");
    CHECK(outcome("http://media.example:0018110/", policy) == "refused");
}

TEST_CASE("an allowed host must still have a valid form") {
    const FetchPolicy policy = allowing({"127.0.0.1:8080", "[::1]", "localhost", "10.0.0.1"});
    CHECK(outcome("http://127.0.0.1:8080/", policy) == "http://127.0.0.1:8080/");
    CHECK(outcome("http://[::1]/", policy) == "http://[::1]/");
    CHECK(outcome("http://[0:0:0:0:0:0:0:1]/", policy) == "http://[::1]/");
    CHECK(outcome("http://LOCALHOST./", policy) == "http://localhost/");
    CHECK(outcome("http://10.0.0.1/", policy) == "http://10.0.0.1/");
    for (const std::string_view text :
         {"http://127.0.0.1/", "http://127.0.0.1:8081/", "http://10.0.0.1:8080/",
          "http://10.0.0.2/", "http://u@localhost/", "file://localhost/", "http://localhost:22/",
          "http://a.localhost/", "http://[::ffff:10.0.0.1]/", "http://[::2]/"}) {
        CHECK_MESSAGE(outcome(text, policy) == "refused", text);
    }
}

TEST_CASE("accepted texts for an allowed host") {
    CHECK(*parse_allowed_host("Media.Example.:8080") ==
          AllowedHost{.name = "media.example", .address = {}, .port = 8080});
    CHECK(parse_allowed_host("[::1]:80")->address == parse_address("::1"));
    CHECK(parse_allowed_host("127.0.0.1")->name.empty());
    for (const std::string_view text :
         {"", ":80", "a:", "a:0", "a:65536", "a:b", "::1", "[::1", "[::1]x", "[127.0.0.1]", "a b",
          "http://a/", "a/b", "u@a", "*.a", "127.1", "m\u00fcnchen.example", "a..b"}) {
        const auto parsed = parse_allowed_host(text);
        REQUIRE_MESSAGE(!parsed.has_value(), text);
        CHECK(parsed.error().code == ErrorCode::invalid_argument);
    }
}

TEST_CASE("targets of redirects") {
    const auto from = check_url("https://media.example/a/b?c", {});
    REQUIRE(from.has_value());
    const auto leads = [&](std::string_view location) {
        const auto resolved = resolve_location(*from, location);
        return resolved ? *resolved : std::string("refused");
    };
    CHECK(leads("/d") == "https://media.example/d");
    CHECK(leads("d?e") == "https://media.example/a/d?e");
    CHECK(leads("?e") == "https://media.example/a/b?e");
    CHECK(leads("../../../d") == "https://media.example/d");
    CHECK(leads("//other.example/d") == "https://other.example/d");
    CHECK(leads("http://other.example/") == "http://other.example/");
    CHECK(leads("file:///etc/passwd") == "file:///etc/passwd");  // `check_url` must refuse it.
    CHECK(leads("http:/other.example/") == "http:/other.example/");
    CHECK(outcome(leads("///other.example/")) == "refused");
    CHECK(outcome(leads("http:other.example")) == "refused");
    CHECK(outcome(leads("//127.0.0.1/")) == "refused");
    CHECK(outcome(leads("//u@media.example/")) == "refused");
    for (const std::string_view location : {"", " ", "\\\\other.example", "/a b", "/\xff", "/%q",
                                            "/\\other.example", "\tjavascript:0"}) {
        CHECK_MESSAGE(leads(location) == "refused", location);
    }
}
