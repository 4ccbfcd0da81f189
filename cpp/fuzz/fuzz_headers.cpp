// Header fields of received requests: any bytes as a Content-Type.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "check.hpp"
#include "polymux/contract/check.hpp"

using namespace polymux;

namespace {

/// The field in lower case, without leading blanks.
std::string plain(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    std::string result(begin == std::string_view::npos ? "" : text.substr(begin));
    for (char& letter : result) {
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    }
    return result;
}

bool names(std::string_view text, std::string_view type) {
    return text.starts_with(type) &&
           (text.size() == type.size() ||
            std::string_view(" \t;").find(text[type.size()]) != std::string_view::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // A copy with the exact size, to detect reads past its end.
    const std::string text(data, data + size);
    constexpr std::array both = {contract::Encoding::json, contract::Encoding::multipart};
    const auto encoding = contract::encoding_of(text, both);
    for (const contract::Encoding& one : both) {
        const auto only = contract::encoding_of(text, {&one, 1});
        POLYMUX_FUZZ_CHECK(only.has_value() == (encoding && *encoding == one));
    }
    if (!encoding) {
        POLYMUX_FUZZ_CHECK(encoding.error().code == ErrorCode::unsupported_encoding);
        POLYMUX_FUZZ_CHECK(encoding.error().message.size() < 400);
        return 0;
    }
    const std::string found = plain(text);
    if (*encoding == contract::Encoding::json) {
        POLYMUX_FUZZ_CHECK(names(found, "application/json"));
    } else {
        POLYMUX_FUZZ_CHECK(names(found, "multipart/form-data"));
        POLYMUX_FUZZ_CHECK(found.find("boundary=") != std::string::npos);
    }
    return 0;
}
