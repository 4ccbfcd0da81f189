// Helpers of the file sink's tests.
#pragma once

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "polymux/media/sink.hpp"
#include "support.hpp"

namespace polymux::testing {

inline constexpr media::FileSinkOptions no_overwrite{.overwrite = false, .input = {}};
using Names = std::vector<std::string>;

inline std::unique_ptr<media::ByteSink> open_sink(const std::string& path,
                                                  const media::FileSinkOptions& options = {}) {
    auto sink = media::create_file_sink(path, options);
    if (!sink) FAIL(sink.error().message);
    return *std::move(sink);
}

inline Error refusal_of(const std::string& path, const media::FileSinkOptions& options = {}) {
    const auto sink = media::create_file_sink(path, options);
    REQUIRE_FALSE(sink);
    return sink.error();
}

inline bool says(const Error& error, std::string_view text) {
    return error.message.find(text) != std::string::npos;
}

inline mode_t mode_of(const std::string& path) {
    struct stat status{};
    REQUIRE(::lstat(path.c_str(), &status) == 0);
    return status.st_mode & 07777U;
}

/// Drops superuser rights, with which every permission test would pass; in a child only.
inline bool become_nobody() {
    return ::geteuid() != 0 || (::setgid(65534) == 0 && ::setuid(65534) == 0);
}

/// Deterministic bytes without a short period.
inline std::string noise(std::size_t size) {
    std::string bytes(size, '\0');
    std::uint32_t state = 1;
    for (char& byte : bytes) {
        state = state * 1664525U + 1013904223U;
        byte = static_cast<char>(state >> 24U);
    }
    return bytes;
}

}  // namespace polymux::testing
