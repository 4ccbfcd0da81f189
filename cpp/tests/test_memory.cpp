#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "polymux/media/sink.hpp"
#include "polymux/media/source.hpp"
#include "support.hpp"

using namespace polymux;
using polymux::testing::as_bytes;
using polymux::testing::as_text;

namespace {

std::string read_up_to(media::ByteSource& source, std::size_t count) {
    std::vector<std::byte> buffer(count);
    const auto read = source.read(buffer);
    REQUIRE(read);
    REQUIRE(*read <= count);
    return as_text(std::span(buffer).first(*read));
}

}  // namespace

TEST_SUITE("memory") {
    TEST_CASE("a memory source reads in order, ends, and seeks") {
        const std::string content = "0123456789";
        const auto source = media::memory_source(as_bytes(content), "ten digits");
        CHECK(source->name() == "ten digits");
        CHECK(source->seekable());
        CHECK(source->size_bytes() == 10);
        CHECK_FALSE(source->identity().has_value());
        CHECK(read_up_to(*source, 4) == "0123");
        CHECK(read_up_to(*source, 0).empty());
        CHECK(read_up_to(*source, 100) == "456789");
        CHECK(read_up_to(*source, 1).empty());
        REQUIRE(source->seek(9));
        CHECK(read_up_to(*source, 5) == "9");
        REQUIRE(source->seek(0));
        CHECK(read_up_to(*source, 2) == "01");
    }

    TEST_CASE("a position past the end is the end") {
        const auto source = media::memory_source(as_bytes("abc"), "");
        for (const std::uint64_t position :
             {std::uint64_t{3}, std::uint64_t{4}, std::numeric_limits<std::uint64_t>::max()}) {
            REQUIRE(source->seek(position));
            CHECK(read_up_to(*source, 8).empty());
        }
        REQUIRE(source->seek(1));
        CHECK(read_up_to(*source, 8) == "bc");
    }

    TEST_CASE("a memory sink returns what it received, and nothing before it") {
        std::vector<std::byte> bytes(3);
        const auto sink = media::memory_sink(&bytes);
        REQUIRE(sink->can_read_back());
        REQUIRE(sink->write(as_bytes("0123456789")));
        std::vector<std::byte> buffer(4);
        const auto middle = sink->read_back(8, buffer);
        REQUIRE(middle);
        CHECK(as_text(std::span(buffer).first(*middle)) == "89");
        const auto behind = sink->read_back(10, buffer);
        REQUIRE(behind);
        CHECK(*behind == 0);
    }

    TEST_CASE("an empty memory source is at its end") {
        const auto source = media::memory_source({}, "nothing");
        CHECK(source->size_bytes() == 0);
        CHECK(read_up_to(*source, 16).empty());
    }

    TEST_CASE("a memory sink appends and patches its own bytes") {
        std::vector<std::byte> bytes(2, std::byte{'-'});
        {
            const auto sink = media::memory_sink(&bytes);
            CHECK(sink->can_patch());
            REQUIRE(sink->write(as_bytes("hello ")));
            REQUIRE(sink->write({}));
            REQUIRE(sink->write(as_bytes("world")));
            REQUIRE(sink->patch(0, as_bytes("J")));
            REQUIRE(sink->patch(6, as_bytes("there")));
            REQUIRE(sink->commit());
        }
        CHECK(as_text(bytes) == "--Jello there");
    }

    TEST_CASE("a memory sink refuses a patch outside of the written range") {
        std::vector<std::byte> bytes(2, std::byte{'-'});
        const auto sink = media::memory_sink(&bytes);
        REQUIRE(sink->write(as_bytes("abc")));
        CHECK(sink->patch(3, {}));
        for (const std::uint64_t offset :
             {std::uint64_t{2}, std::uint64_t{4}, std::numeric_limits<std::uint64_t>::max()}) {
            const auto patched = sink->patch(offset, as_bytes("xy"));
            REQUIRE_FALSE(patched);
            CHECK(patched.error().code == ErrorCode::internal);
        }
        REQUIRE(sink->commit());
        CHECK(as_text(bytes) == "--abc");
    }

    TEST_CASE("without commit a memory sink leaves nothing behind") {
        std::vector<std::byte> bytes(1, std::byte{'-'});
        {
            REQUIRE(media::memory_sink(&bytes)->write(as_bytes("half")));
        }
        CHECK(as_text(bytes) == "-");
    }
}
