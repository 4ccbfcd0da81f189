#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "path_text.hpp"
#include "polymux/media/source.hpp"
#include "support.hpp"

using namespace polymux;
using polymux::testing::as_text;
using polymux::testing::run_in_child;
using polymux::testing::TemporaryFolder;
using polymux::testing::write_file;

namespace {

std::string read_all(media::ByteSource& source, std::size_t block = 1000) {
    std::string content;
    std::vector<std::byte> buffer(block);
    for (;;) {
        const auto count = source.read(buffer);
        REQUIRE(count);
        if (*count == 0) return content;
        content += as_text(std::span(buffer).first(*count));
    }
}

Error refusal_of(const std::string& path) {
    const auto source = media::open_file(path);
    REQUIRE_FALSE(source);
    // Quoted text in a message must not break a log line or a terminal.
    CHECK(std::none_of(source.error().message.begin(), source.error().message.end(),
                       [](char value) { return static_cast<unsigned char>(value) < 0x20; }));
    return source.error();
}

bool says(const Error& error, std::string_view text) {
    return error.message.find(text) != std::string::npos;
}

}  // namespace

TEST_SUITE("file source") {
    TEST_CASE("a file is read completely, seeks, and reports its size and identity") {
        const TemporaryFolder folder;
        std::string content;
        for (int index = 0; index < 5000; ++index) content += std::to_string(index) + "\n";
        const std::string path = folder.file("numbers");
        write_file(path, content);
        const auto source = media::open_file(path);
        REQUIRE(source);
        CHECK((*source)->name() == path);
        CHECK((*source)->seekable());
        CHECK((*source)->size_bytes() == content.size());
        CHECK(read_all(**source) == content);
        REQUIRE((*source)->seek(content.size() - 5));
        CHECK(read_all(**source) == content.substr(content.size() - 5));
        REQUIRE((*source)->seek(content.size() + 100));
        CHECK(read_all(**source).empty());

        struct stat status{};
        REQUIRE(::stat(path.c_str(), &status) == 0);
        CHECK((*source)->identity() ==
              media::FileIdentity{.device = status.st_dev, .inode = status.st_ino});
    }

    TEST_CASE("an empty file opens and is at its end") {
        const TemporaryFolder folder;
        write_file(folder.file("empty"), "");
        const auto source = media::open_file(folder.file("empty"));
        REQUIRE(source);
        CHECK((*source)->size_bytes() == 0);
        CHECK(read_all(**source).empty());
    }

    TEST_CASE("a position beyond any file is an error and changes nothing") {
        const TemporaryFolder folder;
        write_file(folder.file("a"), "abc");
        const auto source = media::open_file(folder.file("a"));
        REQUIRE(source);
        const auto sought = (*source)->seek(std::numeric_limits<std::uint64_t>::max());
        REQUIRE_FALSE(sought);
        CHECK(sought.error().code == ErrorCode::input_unreadable);
        CHECK(read_all(**source) == "abc");
    }

    TEST_CASE("a file that shrinks while it is read just ends") {
        const TemporaryFolder folder;
        write_file(folder.file("log"), std::string(10'000, 'x'));
        const auto source = media::open_file(folder.file("log"));
        REQUIRE(source);
        std::vector<std::byte> buffer(4000);
        REQUIRE(*(*source)->read(buffer) == 4000);
        std::filesystem::resize_file(folder.file("log"), 5000);
        CHECK(read_all(**source).size() == 1000);
        std::filesystem::resize_file(folder.file("log"), 100);
        CHECK(read_all(**source).empty());
    }

    TEST_CASE("a file that is replaced while it is read stays the one that was opened") {
        const TemporaryFolder folder;
        write_file(folder.file("a"), "first");
        const auto source = media::open_file(folder.file("a"));
        REQUIRE(source);
        write_file(folder.file("b"), "second");
        std::filesystem::rename(folder.file("b"), folder.file("a"));
        CHECK(read_all(**source) == "first");
    }

    // K21
    TEST_CASE("any name is a plain name") {
        const TemporaryFolder folder;
        for (const std::string_view name : {"-x.wav",
                                            "-",
                                            "--help",
                                            "file:x",
                                            "concat:a|b",
                                            "pipe:0",
                                            "http:",
                                            "image%03d.png",
                                            "a\nb",
                                            "a b\tc",
                                            "*?[x]",
                                            "\xff\xfe\x80.mp3",
                                            "\xc3\xa9",
                                            "\\",
                                            "'",
                                            "\"",
                                            "~",
                                            "$HOME",
                                            "data:text,plain",
                                            "subfile,,start,0,end,1,,:a",
                                            "crypto:x"}) {
            CAPTURE(quoted_path(name));
            const std::string content = "content of " + std::string(name);
            write_file(folder.file(name), content);
            const auto source = media::open_file(folder.file(name));
            REQUIRE(source);
            CHECK(read_all(**source) == content);
        }
    }

    TEST_CASE("a relative path refers to the current folder, whatever it starts with") {
        const TemporaryFolder folder;
        write_file(folder.file("-x.wav"), "dash");
        write_file(folder.file("file:x"), "scheme");
        CHECK(run_in_child([&folder] {
                  if (::chdir(folder.path().c_str()) != 0) return 1;
                  if (!media::open_file("-x.wav")) return 2;
                  if (!media::open_file("file:x")) return 3;
                  return media::open_file("x") ? 4 : 0;
              }) == 0);
    }

    // K20
    TEST_CASE("a missing file is reported as missing") {
        const TemporaryFolder folder;
        const Error missing = refusal_of(folder.file("nothing.wav"));
        CHECK(missing.code == ErrorCode::input_not_found);
        CHECK(missing.os_errno == ENOENT);
        CHECK(missing.input_name == folder.file("nothing.wav"));
        CHECK(says(missing, "nothing.wav'"));

        write_file(folder.file("file"), "x");
        const Error through_file = refusal_of(folder.file("file/talk.wav"));
        CHECK(through_file.code == ErrorCode::input_not_found);
        CHECK(through_file.os_errno == ENOTDIR);

        std::filesystem::create_symlink(folder.file("gone"), folder.file("link"));
        const Error dangling = refusal_of(folder.file("link"));
        CHECK(dangling.code == ErrorCode::input_not_found);
        CHECK(says(dangling, "symbolic link"));
    }

    TEST_CASE("a symbolic link to a file is followed") {
        const TemporaryFolder folder;
        write_file(folder.file("file"), "content");
        std::filesystem::create_symlink("file", folder.file("link"));
        const auto source = media::open_file(folder.file("link"));
        REQUIRE(source);
        CHECK(read_all(**source) == "content");
    }

    TEST_CASE("symbolic link loops are refused") {
        const TemporaryFolder folder;
        std::filesystem::create_symlink("b", folder.file("a"));
        std::filesystem::create_symlink("a", folder.file("b"));
        const Error error = refusal_of(folder.file("a"));
        CHECK(error.code == ErrorCode::input_unreadable);
        CHECK(error.os_errno == ELOOP);
    }

    // K20
    TEST_CASE("folders, pipes, sockets and devices are refused without waiting for them") {
        const TemporaryFolder folder;
        const auto start = std::chrono::steady_clock::now();

        const Error of_folder = refusal_of(folder.path());
        CHECK(of_folder.code == ErrorCode::input_unreadable);
        CHECK(says(of_folder, "it is a directory"));
        CHECK(says(refusal_of(folder.path() + "/"), "it is a directory"));
        CHECK(says(refusal_of("/"), "it is a directory"));

        REQUIRE(::mkfifo(folder.file("pipe").c_str(), 0600) == 0);
        const Error of_pipe = refusal_of(folder.file("pipe"));
        CHECK(of_pipe.code == ErrorCode::input_unreadable);
        CHECK(says(of_pipe, "it is a pipe"));
        CHECK(says(of_pipe, "'-'"));

        const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        REQUIRE(folder.file("socket").size() < sizeof address.sun_path);
        std::strncpy(address.sun_path, folder.file("socket").c_str(), sizeof address.sun_path - 1);
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the socket API's own way.
        REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
        const Error of_socket = refusal_of(folder.file("socket"));
        CHECK(of_socket.code == ErrorCode::input_unreadable);
        CHECK(says(of_socket, "it is a socket"));
        ::close(listener);

        for (const char* device : {"/dev/null", "/dev/zero", "/dev/urandom"}) {
            const Error of_device = refusal_of(device);
            CHECK(of_device.code == ErrorCode::input_unreadable);
            CHECK(says(of_device, "it is a device"));
        }
        CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
    }

    TEST_CASE("a file that this user may not read is refused") {
        const TemporaryFolder folder;
        write_file(folder.file("secret"), "x");
        std::filesystem::permissions(folder.file("secret"), std::filesystem::perms::none);
        std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
        // In a child without superuser rights, to get the same result for every user.
        CHECK(run_in_child([&folder] {
                  if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return 1;
                  const auto source = media::open_file(folder.file("secret"));
                  if (source || source.error().code != ErrorCode::input_unreadable) return 2;
                  return source.error().os_errno == EACCES ? 0 : 3;
              }) == 0);
    }

    TEST_CASE("an empty path, a zero byte and a path too long are errors, not crashes") {
        CHECK(refusal_of("").code == ErrorCode::invalid_argument);

        const TemporaryFolder folder;
        write_file(folder.file("a"), "x");
        const Error zero = refusal_of(folder.file("a") + std::string("\0.mp3", 5));
        CHECK(zero.code == ErrorCode::invalid_argument);

        const Error long_name = refusal_of(folder.file(std::string(256, 'n')));
        CHECK(long_name.code == ErrorCode::input_unreadable);
        CHECK(long_name.os_errno == ENAMETOOLONG);
        CHECK(long_name.message.size() < 600);
        CHECK(refusal_of(std::string(1'000'000, 'n')).os_errno == ENAMETOOLONG);
    }

    // K21
    TEST_CASE("4,095 characters of path are a plain path, 4,096 are one too many") {
        const TemporaryFolder folder;
        write_file(folder.file("a"), "deep");
        const std::string start = folder.path() + "/";
        std::string rest = start.size() % 2 == 0 ? "" : "/";
        while (start.size() + rest.size() < 4094) rest += "./";
        rest += "a";
        REQUIRE(start.size() + rest.size() == 4095);
        const auto source = media::open_file(start + rest);
        REQUIRE(source);
        CHECK(read_all(**source) == "deep");
        CHECK(refusal_of(start + "/" + rest).os_errno == ENAMETOOLONG);
    }

    TEST_CASE("a descriptor is not leaked, and not inherited by other programs") {
        const TemporaryFolder folder;
        write_file(folder.file("a"), "x");
        const auto open_descriptors = [] {
            return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
        };
        const auto before = open_descriptors();
        for (int round = 0; round < 50; ++round) {
            CHECK(media::open_file(folder.file("a")));
            CHECK_FALSE(media::open_file(folder.path()));
        }
        CHECK(open_descriptors() == before);
        const auto source = media::open_file(folder.file("a"));
        REQUIRE(source);
        const auto listing = polymux::testing::run_program({"ls", "-l", "/proc/self/fd"});
        CHECK(listing.exit_status == 0);
        CHECK(listing.output.find(folder.path()) == std::string::npos);
    }
}

TEST_SUITE("path text") {
    TEST_CASE("a quoted path is one line of valid UTF-8") {
        CHECK(quoted_path("talk.mp4") == "'talk.mp4'");
        CHECK(quoted_path("") == "''");
        CHECK(quoted_path("Müller – 日本 😀.mp3") == "'Müller – 日本 😀.mp3'");
        CHECK(quoted_path("a\nb\x1b[2J\x7f") == "'a\\x0ab\\x1b[2J\\x7f'");
        CHECK(quoted_path("a\xff\xfe") == "'a\\xff\\xfe'");
        CHECK(quoted_path("\xc2\x9b") == "'\\xc2\\x9b'");  // U+009B controls terminals.
        CHECK(quoted_path("\xc2\xa9") == "'\xc2\xa9'");
        CHECK(quoted_path("\xc0\xaf") == "'\\xc0\\xaf'");  // Overlong.
        CHECK(quoted_path("\xe0\x80\xaf") == "'\\xe0\\x80\\xaf'");
        CHECK(quoted_path("\xed\xa0\x80") == "'\\xed\\xa0\\x80'");  // Surrogate.
        CHECK(quoted_path("\xf4\x90\x80\x80") == "'\\xf4\\x90\\x80\\x80'");
        CHECK(quoted_path("\xe6\x97") == "'\\xe6\\x97'");  // Truncated.
    }

    TEST_CASE("a long path loses its middle, never half a character") {
        std::string path;
        for (int index = 0; index < 500; ++index) path += "日";
        for (const char* prefix : {"", "x", "xx"}) {
            const std::string text = quoted_path(prefix + path + "/talk.mp4");
            CHECK(text.size() < 320);
            CHECK(text.find("[...]") != std::string::npos);
            CHECK(text.find("\\x") == std::string::npos);
            CHECK(text.ends_with("/talk.mp4'"));
        }
    }
}
