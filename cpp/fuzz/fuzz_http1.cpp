// Any bytes as HTTP/1.1 messages: whole and in pieces the parser reports the same, and the writer
// writes each accepted message so that it is read as the same message. The first bytes select the
// kind of message, the limits and the sizes of the pieces.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "http1_support.hpp"

using namespace polymux;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t choices = 4;
    if (size < choices) return 0;
    const auto kind =
        (data[0] & 1U) != 0 ? http1::MessageKind::response : http1::MessageKind::request;
    const bool to_head_request = (data[0] & 2U) != 0;
    http1::Limits limits;
    if ((data[0] & 4U) != 0) {
        limits = {.max_start_line_bytes = 40,
                  .max_field_bytes = 30,
                  .max_fields = 5,
                  .max_fields_bytes = 100,
                  .max_body_bytes = 30,
                  .max_chunk_extension_bytes = 10,
                  .max_trailers = 2,
                  .max_trailers_bytes = 30};
    }
    const std::string input(data, data + size);
    const std::string_view bytes = std::string_view(input).substr(choices);

    const std::string expected = testing::read_http1(
        kind, bytes, limits, [] { return std::numeric_limits<std::size_t>::max(); },
        to_head_request);
    std::size_t turn = 0;
    const auto piece = [&] { return std::size_t{1} + data[1 + turn++ % (choices - 1)] % 64U; };
    POLYMUX_FUZZ_CHECK(testing::read_http1(kind, bytes, limits, piece, to_head_request) ==
                       expected);

    if (to_head_request) return 0;
    const std::vector<testing::Http1Message> messages = testing::parse_http1(kind, bytes, limits);
    for (const testing::Http1Message& message : messages) {
        std::string written;
        const std::string failure = testing::write_http1(written, message, piece());
        // Only requests of HTTP/1.0 have no Host.
        if (failure == "no Host field") continue;
        POLYMUX_FUZZ_CHECK(failure.empty());
        const auto again = testing::parse_http1(kind, written, {});
        POLYMUX_FUZZ_CHECK(again.size() == 1 && again.front() == message);
    }
    return 0;
}
