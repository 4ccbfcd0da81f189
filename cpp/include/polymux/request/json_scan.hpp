// Measures JSON text while it arrives, before anything parses it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace polymux::json {

/// Does not check the text: the results are those of valid JSON. Not thread-safe.
class Scan {
public:
    /// Looks for `member` in the root object.
    explicit Scan(std::string member) : member_(std::move(member)) {}

    void add(std::string_view piece);

    /// The maximum number of open arrays and objects.
    [[nodiscard]] std::size_t depth() const noexcept { return max_depth_; }
    /// An upper bound for the number of values.
    [[nodiscard]] std::size_t values() const noexcept { return values_; }
    /// The text of the member, if the last one so far is a string of at most 100 bytes without
    /// escapes, and no name in the root object has escapes.
    [[nodiscard]] const std::optional<std::string>& found() const noexcept { return found_; }

private:
    std::size_t scan_string(std::string_view rest);
    void end_string();
    void scan_structure(char character);

    std::string member_;
    std::optional<std::string> found_;
    std::size_t depth_ = 0;
    std::size_t max_depth_ = 0;
    std::size_t values_ = 1;
    bool root_is_object_ = false;
    bool in_string_ = false;
    bool after_backslash_ = false;
    bool is_value_ = false;      // In the root object: after a colon.
    bool is_member_ = false;     // The last name in the root object was `member_`.
    bool has_escape_ = false;    // In the string that is being read.
    bool name_escaped_ = false;  // A name in the root object had an escape.
    std::string text_;           // The beginning of the string, in the root object.
};

}  // namespace polymux::json
