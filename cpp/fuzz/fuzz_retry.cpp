// A server's requested retry delay: any bytes as the three header fields.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "check.hpp"
#include "transport/retry.hpp"

using namespace polymux::transport;

namespace {

constexpr std::int64_t max_ms = 1'000'000'000'000;

/// Header fields have no line ends; the HTTP reader has split them there.
std::string one_line(std::string_view text) {
    std::string result(text);
    std::erase_if(result, [](char byte) { return byte == '\r' || byte == '\n'; });
    return result;
}

/// The next line of the input.
std::string_view taken(std::string_view& rest) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return line;
}

bool is_whole_number(std::string_view text) {
    return !text.empty() && text.size() <= 9 &&
           std::ranges::all_of(text, [](char byte) { return byte >= '0' && byte <= '9'; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(data, data + size);
    std::string_view rest = text;
    ResponseHead head;
    head.status = 503;
    for (const char* name : {"Retry-After", "Date", "retry-after-ms"}) {
        const std::string value = one_line(taken(rest));
        if (!value.empty()) head.fields += std::string(name) + ": " + value + "\r\n";
    }
    const auto asked = retry_after(head);
    if (asked) {
        POLYMUX_FUZZ_CHECK(asked->count() >= 0);
        POLYMUX_FUZZ_CHECK(asked->count() <= max_ms);
    }
    const std::string_view seconds = head.field("retry-after");
    if (head.field("retry-after-ms").empty() && is_whole_number(seconds)) {
        POLYMUX_FUZZ_CHECK(asked && asked->count() == std::stoll(std::string(seconds)) * 1000);
    }
    const RetryPolicy policy;
    const auto delay = delay_before_retry(policy, 1, &head, static_cast<std::uint32_t>(size));
    POLYMUX_FUZZ_CHECK(delay || (asked && *asked > policy.max_retry_after));
    if (delay) {
        POLYMUX_FUZZ_CHECK(delay->count() >= 0);
        POLYMUX_FUZZ_CHECK(*delay <= std::max(policy.max_retry_after, policy.max_backoff) +
                                         milliseconds(250));
    }
    return 0;
}
