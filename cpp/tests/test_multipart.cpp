#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "polymux/request/multipart.hpp"
#include "support.hpp"

using namespace polymux;
using namespace polymux::request;
using polymux::testing::as_bytes;
using polymux::testing::as_text;
using polymux::testing::TemporaryFolder;
using polymux::testing::write_file;

namespace {

MultipartBody make_body() {
    auto body = MultipartBody::create();
    REQUIRE(body);
    return *std::move(body);
}

std::string boundary_of(const MultipartBody& body) {
    return body.content_type().substr(std::string("multipart/form-data; boundary=").size());
}

/// Reads to the end in pieces of that size.
Result<std::string> try_read_all(MultipartBody& body, std::size_t piece = 65536) {
    std::string content;
    std::vector<std::byte> buffer(piece);
    while (!body.finished()) {
        const auto count = body.read(buffer);
        if (!count) return count.error();
        REQUIRE(*count > 0);
        content += as_text(std::span(buffer).first(*count));
    }
    return content;
}

std::string read_all(MultipartBody& body, std::size_t piece = 65536) {
    auto content = try_read_all(body, piece);
    REQUIRE(content);
    return *content;
}

void add_path(MultipartBody& body, const std::string& path) {
    auto part = file_part(path);
    REQUIRE(part);
    REQUIRE(body.add_file("file", {.file_name = "a.bin"}, *std::move(part)));
}

/// A source with any behavior.
class OddPart final : public PartSource {
public:
    OddPart(std::optional<std::uint64_t> size, std::vector<std::string> pieces)
        : size_(size), pieces_(std::move(pieces)) {}
    std::optional<std::uint64_t> size_bytes() const noexcept override { return size_; }
    Result<std::size_t> read(std::span<std::byte> buffer) override {
        if (next_ == pieces_.size()) return std::size_t{0};
        const std::string& piece = pieces_[next_++];
        REQUIRE(piece.size() <= buffer.size());
        std::ranges::copy(as_bytes(piece), buffer.begin());
        return piece.size();
    }
    bool can_rewind() const noexcept override { return false; }
    Result<void> rewind() override { return {}; }
    const std::string& name() const noexcept override { return name_; }

private:
    std::optional<std::uint64_t> size_;
    std::vector<std::string> pieces_;
    std::size_t next_ = 0;
    std::string name_ = "odd";
};

std::string body_of_names(std::string_view name, std::string_view file_name) {
    MultipartBody body = make_body();
    REQUIRE(body.add_file(name, {.file_name = std::string(file_name)},
                          memory_part(as_bytes("x"), "x")));
    return read_all(body);
}

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

}  // namespace

TEST_SUITE("multipart") {
    TEST_CASE("a body follows RFC 7578 at any read size") {
        for (const std::size_t piece : {1U, 7U, 64U, 65536U}) {
            MultipartBody body = make_body();
            REQUIRE(body.add_text("task", "translate"));
            REQUIRE(body.add_text("note", "two\r\nlines \xc3\xa9"));
            REQUIRE(body.add_file("audio", {.file_name = "t.mp3"},
                                  memory_part(as_bytes("ID3\r\n--x"), "bytes")));
            REQUIRE(body.add_file("mask", {.file_name = "m.dat", .content_type = "image/png"},
                                  memory_part({}, "empty")));
            REQUIRE(body.add_text("last", ""));
            const std::string mark = "--" + boundary_of(body);
            const std::string disposition = "\r\nContent-Disposition: form-data; name=";
            const std::string expected =
                mark + disposition + "\"task\"\r\n\r\ntranslate\r\n" + mark + disposition +
                "\"note\"\r\n\r\ntwo\r\nlines \xc3\xa9\r\n" + mark + disposition +
                "\"audio\"; filename=\"t.mp3\"\r\nContent-Type: audio/mpeg\r\n\r\nID3\r\n--x\r\n" +
                mark + disposition +
                "\"mask\"; filename=\"m.dat\"\r\nContent-Type: image/png\r\n\r\n\r\n" + mark +
                disposition + "\"last\"\r\n\r\n\r\n" + mark + "--\r\n";
            CHECK(body.length_bytes() == expected.size());
            CHECK(read_all(body, piece) == expected);
            CHECK(body.sent_bytes() == expected.size());
            std::byte more{};
            CHECK(*body.read({&more, 1}) == 0);
        }
    }

    TEST_CASE("a body without parts has only its end") {
        MultipartBody body = make_body();
        CHECK(read_all(body) == "--" + boundary_of(body) + "--\r\n");
    }

    TEST_CASE("boundaries are long, of allowed characters, and unique") {
        std::set<std::string> seen;
        for (int index = 0; index < 1000; ++index) {
            const std::string boundary = boundary_of(make_body());
            CHECK(boundary.size() >= 56);
            CHECK(boundary.size() <= 70);  // RFC 2046, 5.1.1
            CHECK(boundary.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz-") ==
                  std::string::npos);
            seen.insert(boundary);
        }
        CHECK(seen.size() == 1000);
    }

    TEST_CASE("names are escaped as in browsers, in any language") {
        CHECK(
            contains(body_of_names("a\"b\r\nc", "\xe6\x97\xa5\xe6\x9c\xac \"x\".png"),
                     "name=\"a%22b%0D%0Ac\"; filename=\"\xe6\x97\xa5\xe6\x9c\xac %22x%22.png\"\r\n"
                     "Content-Type: image/png\r\n"));
        CHECK(contains(body_of_names("f", "100%41\\'.txt"), "filename=\"100%41\\'.txt\""));
        CHECK(
            contains(body_of_names("f", std::string_view("a\0b\x7f", 4)), "filename=\"a%00b%7F\""));
        CHECK(contains(body_of_names("f", "x\xff\xc3.wav"),
                       "filename=\"x\xef\xbf\xbd\xef\xbf\xbd.wav\"\r\nContent-Type: audio/wav"));
        CHECK(contains(body_of_names("image", ""), "filename=\"image\""));
    }

    TEST_CASE("invalid content is refused") {
        MultipartBody body = make_body();
        const auto source = [] { return memory_part(as_bytes("x"), "x"); };
        for (const auto& failed :
             {body.add_text("a\xff", "x"), body.add_text("a", "\xed\xa0\x80"),
              body.add_file("a\xff", {.file_name = "x"}, source()),
              body.add_file("a", {.file_name = "x", .content_type = "text/plain\r\nX: y"},
                            source()),
              body.add_file("a", {.file_name = "x", .content_type = "text"}, source()),
              body.add_file("a", {.file_name = "x", .content_type = "/"}, source()),
              body.add_file("a", {.file_name = "x", .content_type = "text/"}, source())}) {
            REQUIRE_FALSE(failed);
            CHECK(failed.error().code == ErrorCode::invalid_argument);
        }
        CHECK(read_all(body) == "--" + boundary_of(body) + "--\r\n");
        CHECK_FALSE(body.add_text("late", "x"));
        CHECK_FALSE(body.add_file("late", {.file_name = "x"}, source()));
    }

    TEST_CASE("content types depend on the extension, in any case") {
        CHECK(content_type_of("a.mp3") == "audio/mpeg");
        CHECK(content_type_of("A.B.JPeG") == "image/jpeg");
        CHECK(content_type_of("3gp.3GP") == "video/3gpp");
        CHECK(content_type_of(".zip") == "application/zip");
        for (const char* name :
             {"", "mp3", "a.", "a.mp3x", "a.extension_of_many_letters", "a.zzz"}) {
            CHECK(content_type_of(name) == "application/octet-stream");
        }
    }

    TEST_CASE("a file is sent from the disk") {
        const TemporaryFolder folder;
        std::string content;
        for (int index = 0; index < 50'000; ++index) content += std::to_string(index);
        write_file(folder.file("a"), content);
        for (const std::size_t piece : {4099U, 65536U, 1U << 20U}) {
            MultipartBody body = make_body();
            add_path(body, folder.file("a"));
            REQUIRE(body.length_bytes());
            const std::string sent = read_all(body, piece);
            CHECK(sent.size() == *body.length_bytes());
            CHECK(contains(sent, "\r\n\r\n" + content + "\r\n--"));
        }
    }

    TEST_CASE("a descriptor is sent from the requested position; its own position stays") {
        const TemporaryFolder folder;
        write_file(folder.file("a"), "0123456789");
        const int descriptor = ::open(folder.file("a").c_str(), O_RDONLY | O_CLOEXEC);
        REQUIRE(descriptor >= 0);
        MultipartBody body = make_body();
        auto part = descriptor_part(descriptor, 4, "a");
        REQUIRE(part);
        REQUIRE(body.add_file("f", {.file_name = "a"}, *std::move(part)));
        REQUIRE(body.add_file("g", {.file_name = "a"}, *descriptor_part(descriptor, 400, "a")));
        CHECK(::lseek(descriptor, 0, SEEK_CUR) == 0);
        ::close(descriptor);  // The part uses a duplicate.
        const std::string sent = read_all(body);
        CHECK(contains(sent, "\r\n\r\n456789\r\n"));
        CHECK(contains(sent, "\r\n\r\n\r\n"));
        CHECK_FALSE(descriptor_part(descriptor + 1000, 0, "closed"));
    }

    // K16
    TEST_CASE("a file that changes while it is sent never reaches its end") {
        const TemporaryFolder folder;
        const std::string path = folder.file("log");
        const auto change = [&](const auto& how) {
            write_file(path, std::string(100'000, 'x'));
            MultipartBody body = make_body();
            add_path(body, path);
            std::vector<std::byte> buffer(50'000);
            REQUIRE(body.read(buffer));
            how();
            const auto sent = try_read_all(body, 30'000);
            REQUIRE_FALSE(sent);
            CHECK(sent.error().code == ErrorCode::input_changed);
            CHECK(sent.error().input_name == path);
            CHECK(contains(sent.error().message, "log'"));
            CHECK_FALSE(body.finished());
            CHECK(body.sent_bytes() < *body.length_bytes());
            // The failure stays.
            CHECK(body.read(buffer).error().message == sent.error().message);
        };
        change([&] { std::filesystem::resize_file(path, 10); });
        change([&] { std::filesystem::resize_file(path, 99'999); });
        change([&] { std::filesystem::resize_file(path, 100'001); });
        change([&] { std::filesystem::resize_file(path, 200'000); });
        change([&] {
            const timespec times[] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                                      {.tv_sec = 1, .tv_nsec = 1}};
            REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
        });
    }

    TEST_CASE("a deleted file is still sent completely") {
        const TemporaryFolder folder;
        write_file(folder.file("a"), "still here");
        MultipartBody body = make_body();
        add_path(body, folder.file("a"));
        std::filesystem::remove(folder.file("a"));
        CHECK(contains(read_all(body), "still here"));
    }

    // K16
    TEST_CASE("anything but a regular file is refused at once") {
        const TemporaryFolder folder;
        CHECK(file_part(folder.file("nothing")).error().code == ErrorCode::input_not_found);
        CHECK(file_part(folder.path()).error().code == ErrorCode::input_unreadable);
        CHECK(file_part("/dev/zero").error().code == ErrorCode::input_unreadable);
        CHECK(file_part("").error().code == ErrorCode::invalid_argument);
        REQUIRE(::mkfifo(folder.file("pipe").c_str(), 0600) == 0);
        CHECK(file_part(folder.file("pipe")).error().code == ErrorCode::input_unreadable);
        int ends[2] = {};
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        const auto of_pipe = descriptor_part(ends[0], 0, "<pipe>");
        REQUIRE_FALSE(of_pipe);
        CHECK(of_pipe.error().code == ErrorCode::input_unreadable);
        ::close(ends[0]);
        ::close(ends[1]);
    }

    TEST_CASE("a file of /proc with a reported size of 0 is not an empty file") {
        MultipartBody body = make_body();
        add_path(body, "/proc/self/status");
        const auto sent = try_read_all(body);
        REQUIRE_FALSE(sent);
        CHECK(sent.error().code == ErrorCode::input_changed);
    }

    TEST_CASE("a body is sent again after a rewind, also after a failure") {
        const TemporaryFolder folder;
        write_file(folder.file("a"), "content");
        MultipartBody body = make_body();
        REQUIRE(body.add_text("x", "y"));
        add_path(body, folder.file("a"));
        REQUIRE(body.add_file("m", {.file_name = "m"}, memory_part(as_bytes("memory"), "m")));
        CHECK(body.can_rewind());
        const std::string first = read_all(body);
        REQUIRE(body.rewind());
        CHECK(body.sent_bytes() == 0);
        CHECK_FALSE(body.finished());
        CHECK(read_all(body, 3) == first);
        std::filesystem::resize_file(folder.file("a"), 3);
        REQUIRE(body.rewind());
        CHECK_FALSE(try_read_all(body));
        write_file(folder.file("a"), "content");
        REQUIRE(body.rewind());
        CHECK_FALSE(try_read_all(body));  // Written to after it was opened.
    }

    TEST_CASE("sources of unknown length, and of a wrong length") {
        MultipartBody unknown = make_body();
        REQUIRE(unknown.add_file(
            "f", {.file_name = "f"},
            std::make_unique<OddPart>(std::nullopt, std::vector<std::string>{"ab", "c"})));
        CHECK_FALSE(unknown.length_bytes());
        CHECK_FALSE(unknown.can_rewind());
        CHECK(contains(read_all(unknown), "\r\n\r\nabc\r\n--"));
        const auto rewound = unknown.rewind();
        REQUIRE_FALSE(rewound);
        CHECK(contains(rewound.error().message, "only once"));

        MultipartBody less = make_body();
        REQUIRE(less.add_file("f", {.file_name = "f"},
                              std::make_unique<OddPart>(4, std::vector<std::string>{"ab", "c"})));
        const auto sent = try_read_all(less);
        REQUIRE_FALSE(sent);
        CHECK(sent.error().code == ErrorCode::input_changed);
        CHECK(contains(sent.error().message, "3 of 4"));
    }

    TEST_CASE("a short read returns the available bytes instead of waiting for more") {
        MultipartBody body = make_body();
        REQUIRE(body.add_file(
            "f", {.file_name = "f"},
            std::make_unique<OddPart>(std::nullopt, std::vector<std::string>{"ab", "c"})));
        std::vector<std::byte> buffer(65536);
        CHECK(as_text(std::span(buffer).first(*body.read(buffer))).ends_with("\r\n\r\nab"));
        CHECK(as_text(std::span(buffer).first(*body.read(buffer))) == "c");
    }

    TEST_CASE("a fed part waits, continues, ends and fails like its feed") {
        const auto feed = std::make_shared<Feed>();
        MultipartBody body = make_body();
        REQUIRE(body.add_file("before", {.file_name = "b"}, memory_part(as_bytes("b"), "b")));
        REQUIRE(body.add_file("f", {.file_name = "f"}, fed_part(feed, "<f>")));
        CHECK_FALSE(body.length_bytes());
        std::vector<std::byte> buffer(1000);
        REQUIRE(*body.read(buffer) > 0);
        CHECK(*body.read(buffer) == 0);
        CHECK(body.starved());
        CHECK_FALSE(body.finished());
        CHECK(body.current_file() == 1);
        const auto push = [&feed](std::string_view text) {
            feed->push({as_bytes(text).begin(), as_bytes(text).end()});
        };
        push("first ");
        push("");
        push("second");
        CHECK(feed->waiting_bytes() == 12);
        CHECK(*body.read(std::span(buffer).first(8)) == 8);
        CHECK(feed->waiting_bytes() == 4);
        CHECK(as_text(std::span(buffer).first(*body.read(buffer))) == "cond");
        CHECK(*body.read(buffer) == 0);
        CHECK(body.starved());
        feed->finish();
        push("too late");
        CHECK(as_text(std::span(buffer).first(*body.read(buffer))) ==
              "\r\n--" + boundary_of(body) + "--\r\n");
        CHECK(body.finished());
        CHECK_FALSE(body.starved());
        CHECK_FALSE(body.can_rewind());

        const auto failing = std::make_shared<Feed>();
        MultipartBody broken = make_body();
        REQUIRE(broken.add_file("f", {.file_name = "f"}, fed_part(failing, "<f>", 10)));
        CHECK(broken.length_bytes());
        failing->push({as_bytes("abc").begin(), as_bytes("abc").end()});
        failing->fail({.code = ErrorCode::cancelled, .message = "no more"});
        REQUIRE(*broken.read(buffer) > 0);
        CHECK(broken.read(buffer).error().message == "no more");

        const auto longer = std::make_shared<Feed>();
        MultipartBody cut = make_body();
        REQUIRE(cut.add_file("f", {.file_name = "f"}, fed_part(longer, "<f>", 2)));
        longer->push({as_bytes("abc").begin(), as_bytes("abc").end()});
        CHECK(cut.read(buffer).error().code == ErrorCode::input_changed);
    }

    TEST_CASE("a sparse file over 4 GiB is sent to its last byte") {
        const TemporaryFolder folder;
        const std::string path = folder.file("sparse");
        constexpr std::uint64_t size = (std::uint64_t{4} << 30U) + 5;
        write_file(path, "");
        std::filesystem::resize_file(path, size);
        const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
        REQUIRE(::pwrite(descriptor, "END", 3, static_cast<off_t>(size - 3)) == 3);
        ::close(descriptor);
        MultipartBody whole = make_body();
        add_path(whole, path);
        CHECK(*whole.length_bytes() > size);
        // Both sides of 4 GiB; the rest has the same zeros.
        const int reopened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        MultipartBody body = make_body();
        auto part = descriptor_part(reopened, size - (8U << 20U), "sparse");
        ::close(reopened);
        REQUIRE(part);
        REQUIRE(body.add_file("file", {.file_name = "sparse"}, *std::move(part)));
        std::vector<std::byte> buffer(1U << 20U);
        std::string tail;
        while (!body.finished()) {
            const auto count = body.read(buffer);
            REQUIRE(count);
            const auto last = std::span(buffer).first(*count);
            tail += as_text(last.last(std::min<std::size_t>(last.size(), 200)));
            if (tail.size() > 200) tail.erase(0, tail.size() - 200);
        }
        CHECK(body.sent_bytes() == *body.length_bytes());
        CHECK(tail.ends_with(std::string("END\r\n--") + boundary_of(body) + "--\r\n"));
    }
}
