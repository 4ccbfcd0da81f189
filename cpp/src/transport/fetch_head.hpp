// Status line, headers and trailers of a response, from libcurl's lines.
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

    /// Adds the next line, including its line end. Returns true if it ended the head of the final
    /// response. Fails if the declared size is too large. Trailers are counted and dropped.
    Result<bool> take_line(std::string_view line);

    /// If false at the end, libcurl rejected a line over its limit.
    [[nodiscard]] bool complete() const noexcept { return complete_; }
    [[nodiscard]] int status() const noexcept { return status_; }
    /// Declared size of this body.
    [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept { return length_; }
    /// Start of the body in the whole content.
    [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
    /// Whether it is a redirect with a target.
    [[nodiscard]] bool is_redirect() const;
    /// Whether a remainder was requested, and this is neither that nor the whole body.
    [[nodiscard]] bool range_refused() const noexcept { return range_refused_; }
    /// The values that the receiver gets before the body.
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
