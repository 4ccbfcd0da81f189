#include "contract/check_field.hpp"

#include <algorithm>
#include <cmath>

#include "contract/check_text.hpp"
#include "contract/display.hpp"
#include "polymux/text_parsing.hpp"

namespace polymux::contract {

namespace {

constexpr std::uint16_t numeric = type_integer | type_number;
constexpr std::size_t max_number_length = 400;  // Longer texts are not meaningful numbers.

std::string check_multiple(const Field& field, std::int64_t value) {
    const std::int64_t below = value - (value % field.multiple_of);
    return ": must be a multiple of " + std::to_string(field.multiple_of) + "; the nearest are " +
           std::to_string(below) + " and " + std::to_string(below + field.multiple_of);
}

std::string check_integer_choices(const Field& field, std::int64_t value) {
    if (field.integer_choices.empty() ||
        std::ranges::find(field.integer_choices, value) != field.integer_choices.end()) {
        return {};
    }
    std::string text = ": must be one of ";
    for (std::size_t index = 0; index < field.integer_choices.size(); ++index) {
        text += (index == 0 ? "" : ", ") + std::to_string(field.integer_choices[index]);
    }
    return with_unit(field, text);
}

/// Limits that apply to numbers of every field.
std::string_view check_size(const Number& number) {
    if (number.is_integer) return number.fits ? "" : ": must be an integer of at most 64 bits";
    return std::isfinite(number.value) ? "" : ": must be a finite number";
}

std::string check_number(const Field& field, const Number& number) {
    const std::string_view size = check_size(number);
    if (!size.empty()) return std::string(size);
    const double value = number.value;
    const bool low = field.minimum &&
                     (value < *field.minimum || (field.above_minimum && value == *field.minimum));
    const bool high = field.maximum &&
                      (value > *field.maximum || (field.below_maximum && value == *field.maximum));
    if (low || high) return ": must be " + range_text(field);
    if (!number.is_integer) return {};
    if (field.multiple_of != 0 && number.integer % field.multiple_of != 0) {
        return check_multiple(field, number.integer);
    }
    return check_integer_choices(field, number.integer);
}

std::string must_be(const Field& field) {
    const auto types = static_cast<std::uint16_t>(field.types & ~unsigned{type_null});
    std::string text = ": must be " + type_names(types);
    if (!field.unit.empty()) text.append(", in ").append(field.unit);
    return text;
}

/// JSON has one type of numbers: `2.0` is an integer.
std::optional<Number> whole_number(double value) {
    constexpr double limit = 9223372036854775808.0;  // 2^63
    if (!std::isfinite(value) || std::floor(value) != value) return {};
    const bool fits = value >= -limit && value < limit;
    return Number{.value = value,
                  .integer = fits ? static_cast<std::int64_t>(value) : 0,
                  .is_integer = true,
                  .fits = fits};
}

std::optional<Number> parsed_integer(std::string_view text) {
    if (const auto written = parse_integer(text)) {
        return Number{.value = static_cast<double>(written->value),
                      .integer = written->value,
                      .is_integer = true,
                      .fits = written->fits};
    }
    const std::optional<double> number = parse_number(text);
    return number ? whole_number(*number) : std::nullopt;
}

std::optional<Number> parsed_number(std::string_view text) {
    const std::optional<double> number = parse_number(text);
    return number ? std::optional(Number{.value = *number}) : std::nullopt;
}

/// Checks a number that `value` stands for, and returns it.
FieldOutcome checked_number(const Field& field, const ValueSource& value, const Number& number) {
    std::string message = check_number(field, number);
    if (!message.empty()) message.insert(0, '=' + display_value(value));
    return {.message = std::move(message), .number = number};
}

/// A number in a text: in a form, or if the contract defines it as a string.
FieldOutcome numeric_text(const Field& field, const ValueSource& value) {
    const std::string_view text = value.text_head(max_number_length + 1);
    std::optional<Number> number;
    if (text.size() <= max_number_length) {
        number = (field.types & type_integer) != 0 ? parsed_integer(text) : parsed_number(text);
    }
    if (!number) return {.message = '=' + display_value(value) + must_be(field)};
    return checked_number(field, value, *number);
}

FieldOutcome form_text(const Field& field, const ValueSource& value) {
    if ((field.types & type_string) != 0) return {.message = check_text(field, value)};
    if ((field.types & numeric) != 0) return numeric_text(field, value);
    if ((field.types & type_boolean) != 0) {
        const std::optional<bool> read = parse_boolean(value.text_head(max_number_length));
        if (!read) return {.message = '=' + display_value(value) + must_be(field)};
        return {.boolean = read};
    }
    return {.message = (field.types & type_file) != 0 ? ": must be a file, not text"
                                                      : ": cannot be sent in a form"};
}

std::string check_items(const Field& field, const ValueSource& value) {
    const std::size_t count = value.size();
    if (count >= field.min_items && count <= field.max_items) return {};
    const bool few = count < field.min_items;
    const std::size_t bound = few ? field.min_items : field.max_items;
    if (count == 0) return ": must not be empty";
    return ": must have " + std::string(few ? "at least " : "at most ") + std::to_string(bound) +
           (bound == 1 ? " item" : " items") + " (got " + std::to_string(count) + ")";
}

bool accepts_any_text(const Field& field) {
    return field.choices.empty() && field.min_length == 0 && !field.url &&
           field.format == Format::none;
}

}  // namespace

FieldOutcome check_field(const Field& field, const ValueSource& value) {
    if (value.is_form_text()) return form_text(field, value);
    const ValueType type = value.type();
    if (type == type_string && field.written_as_text) return numeric_text(field, value);
    if (type == type_number && (field.types & numeric) == type_integer) {
        const std::optional<Number> whole = whole_number(value.number().value);
        if (whole) return checked_number(field, value, *whole);
    }
    const bool integer_as_number = type == type_integer && (field.types & type_number) != 0;
    if ((field.types & type) == 0 && !integer_as_number) {
        return {.message = '=' + display_value(value) + must_be(field)};
    }
    switch (type) {
        case type_string:
            return {.message = check_text(field, value)};
        case type_integer:
        case type_number: {
            std::string message = check_number(field, value.number());
            if (!message.empty()) message.insert(0, '=' + display_value(value));
            return {.message = std::move(message)};
        }
        case type_array:
            return {.message = check_items(field, value)};
        default:
            return {};
    }
}

std::string check_passed_number(const ValueSource& value) {
    std::string message(check_size(value.number()));
    if (!message.empty()) message.insert(0, '=' + display_value(value));
    return message;
}

bool is_absent(const Field& field, const ValueSource& value, bool in_body) {
    const ValueType type = value.type();
    if (type == type_null) return !field.required;
    if (!in_body || type != type_string || value.text_length(1) != 0) return false;
    if ((field.types & type_string) != 0) return !field.required && !accepts_any_text(field);
    return value.is_form_text() || (field.written_as_text && !field.required);
}

void RuleValues::keep(const ObjectType& type, const Field& field, const ValueSource& value) {
    const bool compared = std::ranges::any_of(type.rules, [&field](const Rule& rule) {
        const bool by_value =
            rule.kind == Rule::Kind::ascending || rule.kind == Rule::Kind::names_field;
        return by_value && std::ranges::find(rule.fields, field.name) != rule.fields.end();
    });
    if (!compared) return;
    if (value.type() == type_string) {
        const std::string_view text = value.text_head(max_number_length);
        kept_.push_back({.field = &field,
                         .number = field.format == Format::time ? parse_time(text) : std::nullopt,
                         .text = std::string(text)});
    } else if ((value.type() & numeric) != 0) {
        kept_.push_back({.field = &field, .number = value.number().value});
    }
}

const RuleValues::Kept* RuleValues::find(std::string_view field) const {
    const auto found =
        std::ranges::find_if(kept_, [field](const Kept& one) { return one.field->name == field; });
    return found == kept_.end() ? nullptr : &*found;
}

const double* RuleValues::number_of(std::string_view field) const {
    const Kept* const found = find(field);
    return found == nullptr || !found->number ? nullptr : &*found->number;
}

const std::string* RuleValues::text_of(std::string_view field) const {
    const Kept* const found = find(field);
    return found == nullptr || found->number ? nullptr : &found->text;
}

}  // namespace polymux::contract
