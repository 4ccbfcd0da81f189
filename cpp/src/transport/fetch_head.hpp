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

class FetchHead {
public:
    FetchHead(const FetchLimits& limits, const FetchResume& resume)
        : limits_(limits), resume_(resume) {}

    /// The next line with its end. True where it ended the head of the final answer, which may be
    /// too large by its own words. Trailers are counted and forgotten.
    Result<bool> take_line(std::string_view line);

    /// Whether libcurl gave up on a line, which is longer than it takes.
    [[nodiscard]] bool complete() const noexcept { return complete_; }
    [[nodiscard]] int status() const noexcept { return status_; }
    /// Of the body that comes, as declared.
    [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept { return length_; }
    /// Of the whole, where the body begins.
    [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
    /// Whether it is a redirect that says where to.
    [[nodiscard]] bool is_redirect() const;
    /// Whether a rest was asked for and this is something else than it, or than all.
    [[nodiscard]] bool range_refused() const noexcept { return range_refused_; }
    /// What whoever takes the body is told before it.
    [[nodiscard]] FetchStart start() const;

    std::vector<std::pair<std::string, std::string>> headers;

private:
    Result<void> finish();
    Result<void> read_length();
    Result<void> check_length() const;
    void check_range();
    void add(std::string_view line);

    const FetchLimits& limits_;
    const FetchResume& resume_;
    std::uint64_t bytes_ = 0;
    std::uint64_t lines_ = 0;
    int status_ = 0;
    bool complete_ = false;
    bool range_refused_ = false;
    std::uint64_t offset_ = 0;
    std::optional<std::uint64_t> length_;
};

}  // namespace polymux::transport
