#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "file_sink_support.hpp"
#include "polymux/media/sink.hpp"
#include "support.hpp"

using namespace polymux;
using namespace polymux::testing;

TEST_SUITE("file sink") {
    TEST_CASE("the file appears at commit, not before, and nothing else remains") {
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

    TEST_CASE("written data is read back, whether it has reached the disk or not") {
        const TemporaryFolder folder;
        const auto sink = open_sink(folder.file("out"));
        REQUIRE(sink->can_read_back());
        const std::string content = noise(150'000);
        REQUIRE(sink->write(as_bytes(content)));
        REQUIRE(sink->write(as_bytes("the end")));
        std::vector<std::byte> buffer(1000);
        for (const std::size_t offset : {std::size_t{0}, std::size_t{149'500}}) {
            const auto count = sink->read_back(offset, buffer);
            REQUIRE(count);
            const std::string whole = content + "the end";
            CHECK(as_text(std::span(buffer).first(*count)) ==
                  whole.substr(offset, offset == 0 ? 1000 : 507));
        }
        const auto behind = sink->read_back(200'000, buffer);
        REQUIRE(behind);
        CHECK(*behind == 0);
    }

    TEST_CASE("an empty file is a file") {
        const TemporaryFolder folder;
        REQUIRE(open_sink(folder.file("empty"))->commit());
        CHECK(read_file(folder.file("empty")).empty());
    }

    TEST_CASE("without commit nothing remains, and an existing file stays") {
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

    TEST_CASE("a patch outside of the written range is refused") {
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

    TEST_CASE("after commit a sink accepts nothing more") {
        const TemporaryFolder folder;
        const auto sink = open_sink(folder.file("out"));
        REQUIRE(sink->write(as_bytes("abc")));
        REQUIRE(sink->commit());
        CHECK_FALSE(sink->write(as_bytes("d")));
        CHECK_FALSE(sink->patch(0, as_bytes("x")));
        CHECK_FALSE(sink->commit());
        CHECK(read_file(folder.file("out")) == "abc");
    }

    TEST_CASE("an existing file is replaced only if allowed") {
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

    TEST_CASE("a file that appears meanwhile survives if overwriting is not allowed") {
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

    TEST_CASE("without overwriting, a new file is still written") {
        const TemporaryFolder folder;
        const auto sink = open_sink(folder.file("new"), no_overwrite);
        REQUIRE(sink->write(as_bytes("new")));
        REQUIRE(sink->commit());
        CHECK(read_file(folder.file("new")) == "new");
        CHECK(folder.entries() == Names{"new"});
    }

    // K20
}
