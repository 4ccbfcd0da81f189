#include "polymux/request/json_scan.hpp"

#include <algorithm>

namespace polymux::json {

namespace {

constexpr std::size_t max_text_bytes = 100;

}  // namespace

void Scan::add(std::string_view piece) {
    while (!piece.empty()) {
        if (in_string_) {
            piece.remove_prefix(scan_string(piece));
        } else {
            scan_structure(piece.front());
            piece.remove_prefix(1);
        }
    }
}

/// Returns the number of bytes read: up to a quote or an escape, or the whole rest.
std::size_t Scan::scan_string(std::string_view rest) {
    if (after_backslash_) {
        after_backslash_ = false;
        return 1;
    }
    const std::size_t end = std::min(rest.find_first_of("\"\\"), rest.size());
    // One more byte shows that the text is too long.
    const std::size_t room = max_text_bytes + 1 - std::min(text_.size(), max_text_bytes + 1);
    if (depth_ == 1) text_.append(rest.substr(0, std::min(end, room)));
    if (end == rest.size()) return end;
    if (rest[end] == '"') {
        end_string();
    } else {
        after_backslash_ = true;
        has_escape_ = true;
    }
    return end + 1;
}

void Scan::end_string() {
    in_string_ = false;
    if (depth_ != 1 || !root_is_object_) return;
    if (!is_value_) {
        name_escaped_ = name_escaped_ || has_escape_;
        is_member_ = text_ == member_;
        if (name_escaped_) found_.reset();
    } else if (is_member_) {
        found_.reset();
        const bool is_plain = !has_escape_ && text_.size() <= max_text_bytes && !name_escaped_;
        if (is_plain) found_ = text_;
    }
}

void Scan::scan_structure(char character) {
    switch (character) {
        case '"':
            in_string_ = true;
            has_escape_ = false;
            text_.clear();
            break;
        case '{':
        case '[':
            if (depth_ == 0) root_is_object_ = character == '{';
            // The member is not a string.
            if (depth_ == 1 && is_value_ && is_member_) found_.reset();
            ++values_;
            max_depth_ = std::max(max_depth_, ++depth_);
            break;
        case '}':
        case ']':
            if (depth_ > 0) --depth_;
            break;
        case ',':
            ++values_;
            if (depth_ == 1) is_value_ = false;
            break;
        case ':':
            if (depth_ == 1) is_value_ = true;
            break;
        default:
            break;
    }
}

}  // namespace polymux::json
