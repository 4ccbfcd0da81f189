#include <doctest/doctest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "file_sink_support.hpp"
#include "polymux/media/sink.hpp"
#include "support.hpp"

using namespace polymux;
using namespace polymux::testing;
using media::create_file_sink;

namespace {

/// On a disk of 256 KiB: writes until it is full, first by `write`, then by `commit`, because the
/// last bytes wait in the buffer. Returns 0 if all checks passed.
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
        }
        if (read_file(folder.file("old")) != "old") return 6;
        if (folder.entries() != Names{"filler", "old"}) return 7;
    }
    return 0;
}

}  // namespace

TEST_SUITE("file sink: modes and failures") {
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

    TEST_CASE(
        "another user's file keeps owner and group if allowed, otherwise access is restricted") {
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
    TEST_CASE("a file size limit is an error with its errno; the old file stays, no part remains") {
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
                      // After a failure it stays failed, because a hole must never be committed.
                      if ((*sink)->write({}) || (*sink)->commit()) return 5;
                      return 0;
                  }
                  return 6;
              }) == 0);
        CHECK(read_file(folder.file("old")) == "old");
    }

    // K20
    TEST_CASE(
        "a full disk is an error that reports the free space; the old file stays, no part "
        "remains") {
        const TemporaryFolder folder;
        constexpr int no_mount = 99;
        // In a child, whose mount is visible only to it and ends with it.
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

    TEST_CASE("many sinks to one destination: each is complete, the last one stays") {
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

    TEST_CASE("a forked child that destroys a sink does not affect its parent") {
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
