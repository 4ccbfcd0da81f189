#include <algorithm>

#include "http1/bytes.hpp"
#include "polymux/http1/parser.hpp"

namespace polymux::http1 {

std::optional<std::string_view> FieldList::find(std::string_view name) const noexcept {
    for (std::size_t index = 0; index < size(); ++index) {
        const Field field = (*this)[index];
        if (field.name.size() == name.size() &&
            std::equal(name.begin(), name.end(), field.name.begin(),
                       [](char left, char right) { return lower(left) == lower(right); })) {
            return field.value;
        }
    }
    return std::nullopt;
}

namespace detail {

namespace {

/// The first problem of a piece of a line, which ends at the latest with its LF. Reports the same
/// problem for any division of the line.
Refusal check_bytes(char before, std::string_view piece) noexcept {
    for (const char byte : piece) {
        if (before == '\r' && byte != '\n') return Refusal::bare_cr;
        if (is_control(byte)) {
            if (byte == '\n') return before == '\r' ? Refusal::none : Refusal::bare_lf;
            if (byte != '\r') return Refusal::control_character;
        }
        before = byte;
    }
    return Refusal::none;
}

}  // namespace

void LineSection::start() noexcept {
    input_ = nullptr;
    copy_.clear();
    size_ = line_begin_ = 0;
    is_copy_ = false;
    line_complete_ = true;
}

bool LineSection::read(std::string_view& input, const Bounds& bounds, Refusal& refusal) {
    if (line_complete_) {
        line_begin_ = size_;
        line_complete_ = false;
    }
    if (size_ == 0) input_ = input.data();
    constexpr std::size_t line_end_bytes = 2;
    const std::size_t line_room = bounds.max_line_bytes + line_end_bytes - (size_ - line_begin_);
    const std::size_t section_room = bounds.max_section_bytes - size_;
    const std::size_t room = std::min(line_room, section_room);
    std::string_view piece = input.substr(0, room);
    const std::size_t line_end = piece.find('\n');
    if (line_end != std::string_view::npos) piece = piece.substr(0, line_end + 1);
    refusal = check_bytes(size_ > line_begin_ ? begin()[size_ - 1] : '\n', piece);
    if (refusal != Refusal::none) return false;
    if (is_copy_) copy_.append(piece);
    size_ += piece.size();
    input.remove_prefix(piece.size());
    if (line_end != std::string_view::npos) {
        line_complete_ = true;
        return true;
    }
    if (piece.size() == room) {
        refusal = section_room < line_room ? bounds.section_refusal : bounds.line_refusal;
        return false;
    }
    keep();
    return false;
}

void LineSection::keep() {
    if (is_copy_ || size_ == 0) return;
    copy_.assign(input_, size_);
    is_copy_ = true;
}

void LineSection::release() noexcept {
    std::string().swap(copy_);
    start();
}

}  // namespace detail

}  // namespace polymux::http1
