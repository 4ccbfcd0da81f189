// Checks one field's value against its type, limits, choices and format, and the rules between
// fields.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "polymux/contract/value.hpp"

namespace polymux::contract {

struct FieldOutcome {
    std::string message = {};  ///< The problem, to follow the field's path; empty if valid.
    std::optional<Number> number = {};  ///< Parsed from a text.
    std::optional<bool> boolean = {};   ///< Parsed from a text.
};

/// Does not descend into nested objects and items.
FieldOutcome check_field(const Field& field, const ValueSource& value);

/// The problem of a number that no field describes: beyond 64 bits, or not a number.
std::string check_passed_number(const ValueSource& value);

/// Whether a field's value means that an optional field is absent: null, and in the body itself
/// (not in nested objects) an empty text, unless any text is valid. For a number, a boolean or a
/// file only a form has an empty text.
bool is_absent(const Field& field, const ValueSource& value, bool in_body);

/// The values that rules compare, collected while an object is walked.
class RuleValues {
public:
    void keep(const ObjectType& type, const Field& field, const ValueSource& value);
    const double* number_of(std::string_view field) const;
    const std::string* text_of(std::string_view field) const;

private:
    struct Kept {
        const Field* field;
        std::optional<double> number = {};
        std::string text = {};
    };
    const Kept* find(std::string_view field) const;

    std::vector<Kept> kept_;
};

/// Returns the problem, or an empty text. `present` has a bit for each given field.
std::string check_rule(const Rule& rule, const ObjectType& type, std::uint64_t present,
                       const RuleValues& values);

}  // namespace polymux::contract
