// Status line, headers and trailers of an answer, as libcurl hands over their lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "polymux/transport/fetch.hpp"

namespace polymux::transport {

class AnswerHead {
public:
    explicit AnswerHead(const FetchLimits& limits) : limits_(limits) {}

    /// The next line with its end. True where it ended the head of the final answer, which may be
    /// too large by its own words. Trailers are counted and forgotten.
    Result<bool> take_line(std::string_view line);

    /// Whether libcurl gave up on a line, which is longer than it takes.
    [[nodiscard]] bool complete() const noexcept { return complete_; }
    [[nodiscard]] int status() const noexcept { return status_; }
    [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept { return length_; }
    /// Whether it is a redirect that says where to.
    [[nodiscard]] bool leads_on() const;

    std::vector<std::pair<std::string, std::string>> headers;

private:
    Result<void> finish();
    void add(std::string_view line);

    const FetchLimits& limits_;
    std::uint64_t bytes_ = 0;
    std::uint64_t lines_ = 0;
    int status_ = 0;
    bool complete_ = false;
    std::optional<std::uint64_t> length_;
};

}  // namespace polymux::transport
