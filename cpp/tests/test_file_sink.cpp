#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "media/path_text.hpp"
#include "polymux/media/sink.hpp"
#include "polymux/media/source.hpp"
#include "support.hpp"

using namespace polymux;
using media::create_file_sink;
using media::FileSinkOptions;
using polymux::testing::as_bytes;
using polymux::testing::read_file;
using polymux::testing::run_in_child;
using polymux::testing::TemporaryFolder;
using polymux::testing::write_file;

namespace {

constexpr FileSinkOptions no_overwrite{.overwrite = false, .input = {}};
using Names = std::vector<std::string>;

std::unique_ptr<media::ByteSink> open_sink(const std::string& path,
                                           const FileSinkOptions& options = {}) {
    auto sink = create_file_sink(path, options);
    if (!sink) FAIL(sink.error().message);
    return *std::move(sink);
}

Error refusal_of(const std::string& path, const FileSinkOptions& options = {}) {
    const auto sink = create_file_sink(path, options);
    REQUIRE_FALSE(sink);
    return sink.error();
}

bool says(const Error& error, std::string_view text) {
    return error.message.find(text) != std::string::npos;
}

mode_t mode_of(const std::string& path) {
    struct stat status{};
    REQUIRE(::lstat(path.c_str(), &status) == 0);
    return status.st_mode & 07777U;
}

/// Gives up the superuser's rights, which would make every permission test pass; in a child only.
bool become_nobody() {
    return ::geteuid() != 0 || (::setgid(65534) == 0 && ::setuid(65534) == 0);
}

/// Deterministic bytes without a short period.
std::string noise(std::size_t size) {
    std::string bytes(size, '\0');
    std::uint32_t state = 1;
    for (char& byte : bytes) {
        state = state * 1664525U + 1013904223U;
        byte = static_cast<char>(state >> 24U);
    }
    return bytes;
}

/// On a disk of 256 KiB: writes until it is full, first by `write`, then by `commit`, because the
/// last bytes wait in the buffer. 0 when every promise held.
int fill_disk(const TemporaryFolder& folder) {
    write_file(folder.file("old"), "old");
    for (const bool at_commit : {false, true}) {
        write_file(folder.file("filler"), std::string(at_commit ? 230'000 : 0, 'f'));
        {
            const auto sink = open_sink(folder.file("old"));
            Result<void> outcome = sink->write(as_bytes(std::string(50'000, 'x')));
            for (int count = 0; !at_commit && outcome && count < 10; ++count) {
                outcome = sink->write(as_bytes(std::string(50'000, 'x')));
            }
            if (at_commit) {
                if (!outcome) return 1;
                outcome = sink->commit();
            }
            if (outcome) return 2;
            if (outcome.error().code != ErrorCode::output_failed) return 3;
            if (outcome.error().os_errno != ENOSPC) return 4;
            if (!says(outcome.error(), "MiB free")) return 5;
        }
        if (read_file(folder.file("old")) != "old") return 6;
        if (folder.entries() != Names{"filler", "old"}) return 7;
    }
    return 0;
}

}  // namespace

TEST_SUITE("file sink") {
    TEST_CASE("the file appears at commit, not before, and nothing else stays") {
        const TemporaryFolder folder;
        const std::string path = folder.file("talk.mp3");
        {
            const auto sink = open_sink(path);
            CHECK(sink->can_patch());
            REQUIRE(sink->write(as_bytes("hello ")));
            REQUIRE(sink->write(as_bytes("world")));
            const auto entries = folder.entries();
            REQUIRE(entries.size() == 1);
            CHECK(entries[0].starts_with(".talk.mp3.polymux-"));
            CHECK(entries[0].ends_with(".part"));
            REQUIRE(sink->commit());
            CHECK(folder.entries() == Names{"talk.mp3"});
        }
        CHECK(folder.entries() == Names{"talk.mp3"});
        CHECK(read_file(path) == "hello world");
    }

    TEST_CASE("an empty file is a file") {
        const TemporaryFolder folder;
        REQUIRE(open_sink(folder.file("empty"))->commit());
        CHECK(read_file(folder.file("empty")).empty());
    }

    TEST_CASE("without commit nothing is left, and what was there before stays") {
        const TemporaryFolder folder;
        write_file(folder.file("old"), "old content");
        for (const char* name : {"old", "new"}) {
            const auto sink = open_sink(folder.file(name));
            REQUIRE(sink->write(as_bytes(std::string(200'000, 'x'))));
        }
        CHECK(folder.entries() == Names{"old"});
        CHECK(read_file(folder.file("old")) == "old content");
    }

    TEST_CASE("writes of every size arrive in order") {
        const TemporaryFolder folder;
        const std::string content = noise(1'000'003);
        for (const std::size_t block :
             {std::size_t{1}, std::size_t{7}, std::size_t{417}, std::size_t{65'535},
              std::size_t{65'536}, std::size_t{65'537}, std::size_t{1'000'003}}) {
            CAPTURE(block);
            const std::size_t length = block == 1 ? 70'000 : content.size();
            const auto sink = open_sink(folder.file("out"));
            for (std::size_t offset = 0; offset < length; offset += block) {
                const auto part =
                    std::string_view(content).substr(offset, std::min(block, length - offset));
                REQUIRE(sink->write(as_bytes(part)));
            }
            REQUIRE(sink->commit());
            CHECK((read_file(folder.file("out")) == content.substr(0, length)));
        }
    }

    TEST_CASE("a patch changes flushed bytes, buffered bytes and both at once") {
        const TemporaryFolder folder;
        std::string expected = noise(100'000);
        const auto sink = open_sink(folder.file("out"));
        const auto patch = [&](std::size_t offset, const std::string& bytes) {
            REQUIRE(sink->patch(offset, as_bytes(bytes)));
            expected.replace(offset, bytes.size(), bytes);
        };
        REQUIRE(sink->write(as_bytes(expected.substr(0, 60'000))));
        patch(0, "front");
        patch(59'995, "tail5");
        REQUIRE(sink->write(as_bytes(expected.substr(60'000))));
        patch(59'999, "across");
        patch(99'999, "!");
        patch(100'000, "");
        REQUIRE(sink->write(as_bytes("more")));
        expected += "more";
        REQUIRE(sink->commit());
        CHECK((read_file(folder.file("out")) == expected));
    }

    TEST_CASE("a patch outside of what was written is refused") {
        const TemporaryFolder folder;
        const auto sink = open_sink(folder.file("out"));
        REQUIRE(sink->write(as_bytes("abc")));
        for (const std::uint64_t offset : {std::uint64_t{2}, std::uint64_t{4}, ~std::uint64_t{0}}) {
            const auto patched = sink->patch(offset, as_bytes("xy"));
            REQUIRE_FALSE(patched);
            CHECK(patched.error().code == ErrorCode::internal);
        }
        REQUIRE(sink->commit());
        CHECK(read_file(folder.file("out")) == "abc");
    }

    TEST_CASE("after commit a sink takes nothing more") {
        const TemporaryFolder folder;
        const auto sink = open_sink(folder.file("out"));
        REQUIRE(sink->write(as_bytes("abc")));
        REQUIRE(sink->commit());
        CHECK_FALSE(sink->write(as_bytes("d")));
        CHECK_FALSE(sink->patch(0, as_bytes("x")));
        CHECK_FALSE(sink->commit());
        CHECK(read_file(folder.file("out")) == "abc");
    }

    TEST_CASE("a file that exists is replaced only when that is allowed") {
        const TemporaryFolder folder;
        const std::string path = folder.file("talk.mp3");
        write_file(path, "old");
        const Error error = refusal_of(path, no_overwrite);
        CHECK(error.code == ErrorCode::output_exists);
        CHECK(error.os_errno == EEXIST);
        CHECK(says(error, "talk.mp3'"));
        CHECK(read_file(path) == "old");

        const auto sink = open_sink(path);
        REQUIRE(sink->write(as_bytes("new")));
        CHECK(read_file(path) == "old");
        REQUIRE(sink->commit());
        CHECK(read_file(path) == "new");
        CHECK(folder.entries() == Names{"talk.mp3"});
    }

    TEST_CASE("a file that appears meanwhile survives where overwriting is not allowed") {
        const TemporaryFolder folder;
        const std::string path = folder.file("talk.mp3");
        {
            const auto sink = open_sink(path, no_overwrite);
            REQUIRE(sink->write(as_bytes("new")));
            write_file(path, "somebody else's");
            const auto committed = sink->commit();
            REQUIRE_FALSE(committed);
            CHECK(committed.error().code == ErrorCode::output_exists);
        }
        CHECK(read_file(path) == "somebody else's");
        CHECK(folder.entries() == Names{"talk.mp3"});
    }

    TEST_CASE("without overwriting, a new file is written all the same") {
        const TemporaryFolder folder;
        const auto sink = open_sink(folder.file("new"), no_overwrite);
        REQUIRE(sink->write(as_bytes("new")));
        REQUIRE(sink->commit());
        CHECK(read_file(folder.file("new")) == "new");
        CHECK(folder.entries() == Names{"new"});
    }

    // K20
    TEST_CASE("a symbolic link is refused, its target untouched, whatever it leads to") {
        const TemporaryFolder folder;
        write_file(folder.file("target"), "precious");
        std::filesystem::create_symlink("target", folder.file("link"));
        std::filesystem::create_symlink("nowhere", folder.file("dangling"));
        for (const char* name : {"link", "dangling"}) {
            const Error error = refusal_of(folder.file(name));
            CHECK(error.code == ErrorCode::output_refused);
            CHECK(says(error, "symbolic link"));
            CHECK(refusal_of(folder.file(name), no_overwrite).code == ErrorCode::output_refused);
        }
        CHECK(read_file(folder.file("target")) == "precious");
        CHECK(folder.entries() == Names{"dangling", "link", "target"});
    }

    TEST_CASE("a symbolic link put in place meanwhile is refused at commit") {
        const TemporaryFolder folder;
        write_file(folder.file("target"), "precious");
        {
            const auto sink = open_sink(folder.file("out"));
            REQUIRE(sink->write(as_bytes("new")));
            std::filesystem::create_symlink("target", folder.file("out"));
            const auto committed = sink->commit();
            REQUIRE_FALSE(committed);
            CHECK(committed.error().code == ErrorCode::output_refused);
        }
        CHECK(read_file(folder.file("target")) == "precious");
        CHECK(folder.entries() == Names{"out", "target"});
    }

    TEST_CASE("a folder that is replaced meanwhile does not redirect the output") {
        const TemporaryFolder folder;
        std::filesystem::create_directory(folder.file("music"));
        std::filesystem::create_directory(folder.file("trap"));
        const auto sink = open_sink(folder.file("music/talk.mp3"));
        REQUIRE(sink->write(as_bytes("new")));
        std::filesystem::rename(folder.file("music"), folder.file("moved"));
        std::filesystem::create_symlink("trap", folder.file("music"));
        REQUIRE(sink->commit());
        CHECK(read_file(folder.file("moved/talk.mp3")) == "new");
        CHECK(std::filesystem::is_empty(folder.file("trap")));
    }

    // K20
    TEST_CASE("folders, pipes and devices are refused, with what to do instead") {
        const TemporaryFolder folder;
        for (const std::string& path : {folder.path(), folder.path() + "/", folder.file("."),
                                        folder.file(".."), folder.file("new/"), std::string("/")}) {
            CAPTURE(path);
            CHECK(refusal_of(path).code == ErrorCode::output_refused);
        }
        REQUIRE(::mkfifo(folder.file("pipe").c_str(), 0600) == 0);
        const Error of_pipe = refusal_of(folder.file("pipe"));
        CHECK(of_pipe.code == ErrorCode::output_refused);
        CHECK(says(of_pipe, "it is a pipe"));
        const Error of_device = refusal_of("/dev/null");
        CHECK(of_device.code == ErrorCode::output_refused);
        CHECK(says(of_device, "it is a device"));
        CHECK(says(of_device, "'-'"));
        CHECK(folder.entries() == Names{"pipe"});
    }

    TEST_CASE("/dev/stdout is refused with the advice for what stands behind it") {
        CHECK(run_in_child([] {
                  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
                  if (null < 0 || ::dup2(null, STDOUT_FILENO) < 0) return 1;
                  const auto sink = create_file_sink("/dev/stdout");
                  if (sink || sink.error().code != ErrorCode::output_refused) return 2;
                  return says(sink.error(), "it is a device") && says(sink.error(), "'-'") ? 0 : 3;
              }) == 0);
    }

    // K20
    TEST_CASE("the input is never its own output, by whatever name") {
        const TemporaryFolder folder;
        write_file(folder.file("talk.mp3"), "the input");
        std::filesystem::create_hard_link(folder.file("talk.mp3"), folder.file("hard"));
        const auto source = media::open_file(folder.file("talk.mp3"));
        REQUIRE(source);
        for (const bool overwrite : {true, false}) {
            const FileSinkOptions options{.overwrite = overwrite, .input = (*source)->identity()};
            for (const char* name : {"talk.mp3", "hard", "./talk.mp3"}) {
                const Error error = refusal_of(folder.file(name), options);
                CHECK(error.code == ErrorCode::output_refused);
                CHECK(says(error, "the input itself"));
            }
        }
        {
            // It also must not become the output while the conversion runs.
            const auto sink = open_sink(folder.file("out"), {.input = (*source)->identity()});
            std::filesystem::create_hard_link(folder.file("talk.mp3"), folder.file("out"));
            const auto committed = sink->commit();
            REQUIRE_FALSE(committed);
            CHECK(committed.error().code == ErrorCode::output_refused);
        }
        CHECK(read_file(folder.file("talk.mp3")) == "the input");
        CHECK(folder.entries() == Names{"hard", "out", "talk.mp3"});
    }

    TEST_CASE("a missing folder, a file for a folder, an empty path, a zero byte") {
        const TemporaryFolder folder;
        write_file(folder.file("file"), "x");
        const Error missing = refusal_of(folder.file("nowhere/talk.mp3"));
        CHECK(missing.code == ErrorCode::output_failed);
        CHECK(missing.os_errno == ENOENT);
        CHECK(says(missing, "folder does not exist"));
        const Error file = refusal_of(folder.file("file/talk.mp3"));
        CHECK(file.code == ErrorCode::output_failed);
        CHECK(file.os_errno == ENOTDIR);
        CHECK(refusal_of("").code == ErrorCode::invalid_argument);
        const Error zero = refusal_of(folder.file("talk.mp3") + std::string("\0.txt", 5));
        CHECK(zero.code == ErrorCode::invalid_argument);
        CHECK(folder.entries() == Names{"file"});
    }

    // K20
    TEST_CASE("a read-only file is not replaced, by the superuser neither") {
        const TemporaryFolder folder;
        write_file(folder.file("keep"), "keep me");
        REQUIRE(::chmod(folder.file("keep").c_str(), 0444) == 0);
        const Error error = refusal_of(folder.file("keep"));
        CHECK(error.code == ErrorCode::output_failed);
        CHECK(error.os_errno == EACCES);
        CHECK(says(error, "read-only"));
        CHECK(read_file(folder.file("keep")) == "keep me");
        CHECK(folder.entries() == Names{"keep"});
    }

    TEST_CASE("a folder that this user may not write to is refused") {
        const TemporaryFolder folder;
        write_file(folder.file("talk.mp3"), "old");
        REQUIRE(::chmod(folder.file("talk.mp3").c_str(), 0666) == 0);
        REQUIRE(::chmod(folder.path().c_str(), 0555) == 0);
        CHECK(run_in_child([&folder] {
                  if (!become_nobody()) return 1;
                  for (const char* name : {"talk.mp3", "new.mp3"}) {
                      const auto sink = create_file_sink(folder.file(name));
                      if (sink || sink.error().code != ErrorCode::output_failed) return 2;
                      if (sink.error().os_errno != EACCES) return 3;
                      if (!says(sink.error(), "permission denied")) return 4;
                  }
                  return 0;
              }) == 0);
        REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
        CHECK(folder.entries() == Names{"talk.mp3"});
    }

    TEST_CASE("a folder that may be written to but not listed will do") {
        const TemporaryFolder folder;
        REQUIRE(::chmod(folder.path().c_str(), 0333) == 0);
        CHECK(run_in_child([&folder] {
                  if (!become_nobody()) return 1;
                  const auto sink = create_file_sink(folder.file("talk.mp3"));
                  if (!sink) return 2;
                  if (!(*sink)->write(as_bytes("new"))) return 3;
                  return (*sink)->commit() ? 0 : 4;
              }) == 0);
        REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
        CHECK(read_file(folder.file("talk.mp3")) == "new");
    }

    // K21
    TEST_CASE("any name is a plain name") {
        const TemporaryFolder folder;
        Names expected;
        for (const std::string_view name :
             {"-x.mp3", "--help", "file:x", "concat:a|b", "pipe:1", "out%03d.mp3", "a\nb", "*?[x]",
              "\xff\xfe\x80.mp3", "\xe6\x97\xa5\xe6\x9c\xac", "\\", "'\"", "~", ".hidden", "-"}) {
            CAPTURE(media::quoted_path(name));
            const auto sink = open_sink(folder.file(name));
            REQUIRE(sink->write(as_bytes(name)));
            REQUIRE(sink->commit());
            CHECK(read_file(folder.file(name)) == name);
            expected.emplace_back(name);
        }
        std::sort(expected.begin(), expected.end());
        CHECK(folder.entries() == expected);
    }

    TEST_CASE("a relative path is taken from the folder that was current at the start") {
        const TemporaryFolder folder;
        std::filesystem::create_directory(folder.file("elsewhere"));
        CHECK(run_in_child([&folder] {
                  if (::chdir(folder.path().c_str()) != 0) return 1;
                  const auto sink = create_file_sink("-x.mp3");
                  if (!sink || ::chdir("elsewhere") != 0) return 2;
                  return (*sink)->write(as_bytes("dash")) && (*sink)->commit() ? 0 : 3;
              }) == 0);
        CHECK(read_file(folder.file("-x.mp3")) == "dash");
        CHECK(folder.entries() == Names{"-x.mp3", "elsewhere"});
    }

    TEST_CASE("a name of 255 bytes works, one of 256 is refused before any work") {
        const TemporaryFolder folder;
        std::string name;
        while (name.size() < 255) name += "日";
        REQUIRE(name.size() == 255);
        const auto sink = open_sink(folder.file(name));
        REQUIRE(sink->write(as_bytes("long")));
        const auto entries = folder.entries();
        REQUIRE(entries.size() == 1);
        CHECK(entries[0].size() <= 255);
        CHECK(media::quoted_path(entries[0]) == "'" + entries[0] + "'");
        REQUIRE(sink->commit());
        CHECK(read_file(folder.file(name)) == "long");

        const Error error = refusal_of(folder.file(name + "x"));
        CHECK(error.code == ErrorCode::output_failed);
        CHECK(error.os_errno == ENAMETOOLONG);
        CHECK(refusal_of(std::string(4096, '/') + "x").os_errno == ENAMETOOLONG);
        CHECK(folder.entries() == Names{name});
    }

    TEST_CASE("a new file's mode follows the umask, a replaced file's mode stays") {
        const TemporaryFolder folder;
        CHECK(run_in_child([&folder] {
                  ::umask(027);
                  return (*create_file_sink(folder.file("new")))->commit() ? 0 : 1;
              }) == 0);
        CHECK(mode_of(folder.file("new")) == 0640);
        for (const mode_t mode : {0600U, 0644U, 0666U, 0755U, 0640U}) {
            write_file(folder.file("old"), "old");
            REQUIRE(::chmod(folder.file("old").c_str(), mode) == 0);
            const auto sink = open_sink(folder.file("old"));
            for (const std::string& name : folder.entries()) {
                if (name.ends_with(".part")) CHECK(mode_of(folder.file(name)) == mode);
            }
            REQUIRE(sink->commit());
            CHECK(mode_of(folder.file("old")) == mode);
        }
    }

    TEST_CASE("set-user-ID bits are not carried over") {
        const TemporaryFolder folder;
        write_file(folder.file("old"), "old");
        REQUIRE(::chmod(folder.file("old").c_str(), 04755) == 0);
        REQUIRE(open_sink(folder.file("old"))->commit());
        CHECK(mode_of(folder.file("old")) == 0755);
    }

    TEST_CASE("another user's file keeps owner and group where allowed, else gives nothing away") {
        if (::geteuid() != 0) {
            MESSAGE("needs the superuser to make another user's file");
            return;
        }
        const TemporaryFolder folder;
        REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
        const std::string path = folder.file("talk.mp3");
        struct stat status{};
        write_file(path, "old");
        REQUIRE(::chown(path.c_str(), 12'345, 54'321) == 0);
        REQUIRE(::chmod(path.c_str(), 0640) == 0);
        REQUIRE(open_sink(path)->commit());
        REQUIRE(::stat(path.c_str(), &status) == 0);
        CHECK(status.st_uid == 12'345);
        CHECK(status.st_gid == 54'321);
        CHECK(mode_of(path) == 0640);

        REQUIRE(::chmod(path.c_str(), 0666) == 0);
        CHECK(run_in_child([&path] {
                  if (!become_nobody()) return 1;
                  const auto sink = create_file_sink(path);
                  return sink && (*sink)->commit() ? 0 : 2;
              }) == 0);
        REQUIRE(::stat(path.c_str(), &status) == 0);
        CHECK(status.st_uid == 65'534);
        CHECK(mode_of(path) == 0606);
    }

    TEST_CASE("hard links of a replaced file keep the old content") {
        const TemporaryFolder folder;
        write_file(folder.file("a"), "old");
        std::filesystem::create_hard_link(folder.file("a"), folder.file("b"));
        const auto sink = open_sink(folder.file("a"));
        REQUIRE(sink->write(as_bytes("new")));
        REQUIRE(sink->commit());
        CHECK(read_file(folder.file("a")) == "new");
        CHECK(read_file(folder.file("b")) == "old");
    }

    // K20
    TEST_CASE("a file size limit is an error with its errno; the old file stays, no part does") {
        const TemporaryFolder folder;
        write_file(folder.file("old"), "old");
        CHECK(run_in_child([&folder] {
                  ::signal(SIGXFSZ, SIG_IGN);
                  const rlimit limit{100'000, 100'000};
                  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
                  const auto sink = create_file_sink(folder.file("old"));
                  if (!sink) return 2;
                  const std::string block(60'000, 'x');
                  for (int count = 0; count < 10; ++count) {
                      const auto written = (*sink)->write(as_bytes(block));
                      if (written) continue;
                      if (written.error().code != ErrorCode::output_failed) return 3;
                      if (written.error().os_errno != EFBIG) return 4;
                      // Once failed, it stays failed: a hole must never be committed.
                      if ((*sink)->write({}) || (*sink)->commit()) return 5;
                      return 0;
                  }
                  return 6;
              }) == 0);
        CHECK(read_file(folder.file("old")) == "old");
    }

    // K20
    TEST_CASE(
        "a full disk is an error that tells the free space; the old file stays, no part does") {
        const TemporaryFolder folder;
        constexpr int no_mount = 99;
        // In a child, whose mount nobody else sees and which ends with it.
        const int status = run_in_child([&folder] {
            const int user = ::geteuid() == 0 ? 0 : CLONE_NEWUSER;
            if (::unshare(CLONE_NEWNS | user) != 0) return no_mount;
            ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
            if (::mount("tmpfs", folder.path().c_str(), "tmpfs", MS_NOSUID | MS_NODEV,
                        "size=256k") != 0) {
                return no_mount;
            }
            return fill_disk(folder);
        });
        if (status == no_mount) {
            MESSAGE("no right to mount here; the file size limit above stands in for a full disk");
        } else {
            CHECK(status == 0);
        }
    }

    TEST_CASE("a folder removed meanwhile is an error at commit") {
        const TemporaryFolder folder;
        std::filesystem::create_directory(folder.file("music"));
        const auto sink = open_sink(folder.file("music/talk.mp3"));
        REQUIRE(sink->write(as_bytes("new")));
        std::filesystem::remove_all(folder.file("music"));
        const auto committed = sink->commit();
        REQUIRE_FALSE(committed);
        CHECK(committed.error().code == ErrorCode::output_failed);
        CHECK(folder.entries().empty());
    }

    TEST_CASE("many sinks to one destination: each is whole, the last one stays") {
        const TemporaryFolder folder;
        const std::string path = folder.file("talk.mp3");
        std::atomic<int> failures = 0;
        {
            std::vector<std::jthread> writers;
            for (int number = 0; number < 8; ++number) {
                writers.emplace_back([&path, &failures, number] {
                    const std::string content(100'000, static_cast<char>('a' + number));
                    const auto sink = create_file_sink(path);
                    if (!sink || !(*sink)->write(as_bytes(content)) || !(*sink)->commit()) {
                        ++failures;
                    }
                });
            }
        }
        CHECK(failures == 0);
        const std::string content = read_file(path);
        CHECK(content.size() == 100'000);
        CHECK(content.find_first_not_of(content[0]) == std::string::npos);
        CHECK(folder.entries() == Names{"talk.mp3"});
    }

    TEST_CASE("many sinks to one new name without overwriting: exactly one wins") {
        const TemporaryFolder folder;
        std::vector<std::unique_ptr<media::ByteSink>> sinks;
        for (int number = 0; number < 8; ++number) {
            sinks.push_back(open_sink(folder.file("new"), no_overwrite));
            REQUIRE(sinks.back()->write(as_bytes(std::to_string(number))));
        }
        int won = 0;
        for (const auto& sink : sinks) won += sink->commit() ? 1 : 0;
        sinks.clear();
        CHECK(won == 1);
        CHECK(read_file(folder.file("new")) == "0");
        CHECK(folder.entries() == Names{"new"});
    }

    TEST_CASE("a forked child that lets go of a sink takes nothing away from its parent") {
        const TemporaryFolder folder;
        auto sink = open_sink(folder.file("talk.mp3"));
        REQUIRE(sink->write(as_bytes("parent's")));
        CHECK(run_in_child([&sink] {
                  sink.reset();
                  return 0;
              }) == 0);
        REQUIRE(sink->commit());
        CHECK(read_file(folder.file("talk.mp3")) == "parent's");
    }
}
