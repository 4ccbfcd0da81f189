#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "file_sink_support.hpp"
#include "path_text.hpp"
#include "polymux/media/sink.hpp"
#include "polymux/media/source.hpp"
#include "support.hpp"

using namespace polymux;
using namespace polymux::testing;
using media::create_file_sink;
using media::FileSinkOptions;

TEST_SUITE("file sink: names") {
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

    TEST_CASE("a symbolic link created meanwhile is refused at commit") {
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
    TEST_CASE("folders, pipes and devices are refused with advice") {
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

    TEST_CASE("/dev/stdout is refused with the advice for its target") {
        CHECK(run_in_child([] {
                  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
                  if (null < 0 || ::dup2(null, STDOUT_FILENO) < 0) return 1;
                  const auto sink = create_file_sink("/dev/stdout");
                  if (sink || sink.error().code != ErrorCode::output_refused) return 2;
                  return says(sink.error(), "it is a device") && says(sink.error(), "'-'") ? 0 : 3;
              }) == 0);
    }

    // K20
    TEST_CASE("the input is never its own output, under any name") {
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
                CHECK(says(error, "the input file itself"));
            }
        }
        const FileSinkOptions second{.other_input = (*source)->identity()};
        CHECK(says(refusal_of(folder.file("talk.mp3"), second), "the input file itself"));
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
        const Error file = refusal_of(folder.file("file/talk.mp3"));
        CHECK(file.code == ErrorCode::output_failed);
        CHECK(file.os_errno == ENOTDIR);
        CHECK(refusal_of("").code == ErrorCode::invalid_argument);
        const Error zero = refusal_of(folder.file("talk.mp3") + std::string("\0.txt", 5));
        CHECK(zero.code == ErrorCode::invalid_argument);
        CHECK(folder.entries() == Names{"file"});
    }

    // K20
    TEST_CASE("a read-only file is not replaced, not even by the superuser") {
        const TemporaryFolder folder;
        write_file(folder.file("keep"), "keep me");
        REQUIRE(::chmod(folder.file("keep").c_str(), 0444) == 0);
        const Error error = refusal_of(folder.file("keep"));
        CHECK(error.code == ErrorCode::output_failed);
        CHECK(error.os_errno == EACCES);
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
                  }
                  return 0;
              }) == 0);
        REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
        CHECK(folder.entries() == Names{"talk.mp3"});
    }

    TEST_CASE("a folder that is writable but not listable is enough") {
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
            CAPTURE(quoted_path(name));
            const auto sink = open_sink(folder.file(name));
            REQUIRE(sink->write(as_bytes(name)));
            REQUIRE(sink->commit());
            CHECK(read_file(folder.file(name)) == name);
            expected.emplace_back(name);
        }
        std::sort(expected.begin(), expected.end());
        CHECK(folder.entries() == expected);
    }

    TEST_CASE("a relative path refers to the folder that was current at the start") {
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
        CHECK(quoted_path(entries[0]) == "'" + entries[0] + "'");
        REQUIRE(sink->commit());
        CHECK(read_file(folder.file(name)) == "long");

        const Error error = refusal_of(folder.file(name + "x"));
        CHECK(error.code == ErrorCode::output_failed);
        CHECK(error.os_errno == ENAMETOOLONG);
        CHECK(refusal_of(std::string(4096, '/') + "x").os_errno == ENAMETOOLONG);
        CHECK(folder.entries() == Names{name});
    }
}
