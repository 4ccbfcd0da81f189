// Helpers of the C++ tests: scratch folders, files, other programs, child processes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace polymux::testing {

/// A new empty folder, removed with its contents at the end of the scope.
class TemporaryFolder {
public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    /// Path of `name` in this folder; any bytes but '/' and zero.
    [[nodiscard]] std::string file(std::string_view name) const;
    /// Names of all entries in this folder, including hidden ones, sorted.
    [[nodiscard]] std::vector<std::string> entries() const;

private:
    std::string path_;
};

[[nodiscard]] std::span<const std::byte> as_bytes(std::string_view text) noexcept;
[[nodiscard]] std::string as_text(std::span<const std::byte> bytes);

/// Fails the test if the file cannot be read or written completely.
[[nodiscard]] std::string read_file(const std::string& path);
void write_file(const std::string& path, std::string_view content);

struct ProgramResult {
    int exit_status = 0;  ///< 128 + N if signal N ended the program.
    std::string output;   ///< Standard output, any bytes.
    std::string errors;   ///< Standard error.
};

/// Runs `arguments[0]`, looked up in PATH, to its end with an empty standard input. Fails the test
/// if it cannot be started.
ProgramResult run_program(const std::vector<std::string>& arguments);

/// Runs the ffmpeg program with `arguments` and then `path` as its output:
/// make_media(path, {"-f", "lavfi", "-i", "sine=duration=1", "-c:a", "flac"}).
void make_media(const std::string& path, const std::vector<std::string>& arguments);

/// Runs `body` in a forked child and returns its exit status (128 + N if signal N ended it).
/// Doctest's macros do not work there: `body` reports by its return value.
int run_in_child(const std::function<int()>& body);

}  // namespace polymux::testing
