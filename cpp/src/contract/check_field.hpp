// One field's value against its type, bounds, choices and form; and the rules between fields.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "polymux/contract/value.hpp"

namespace polymux::contract {

struct FieldOutcome {
    std::string message =
        {};  ///< What is wrong, to stand after the field's path; empty if nothing.
    std::optional<Number> number = {};  ///< Read from a text.
    std::optional<bool> boolean = {};   ///< Read from a text.
};

/// Nested objects and items are not looked into.
FieldOutcome check_field(const Field& field, const ValueSource& value);

/// Whether an optional field's value means that it is absent: JSON's null, a form's empty text.
bool is_absent(const Field& field, const ValueSource& value);

/// The values that rules compare, kept while an object is walked.
class RuleValues {
public:
    void keep(const ObjectType& type, const Field& field, const ValueSource& value);
    std::optional<double> number_of(std::string_view field) const;
    std::string_view text_of(std::string_view field) const;

private:
    struct Kept {
        std::string_view field;
        std::optional<double> number;
        std::string text;
    };
    const Kept* find(std::string_view field) const;

    std::vector<Kept> kept_;
};

/// What is wrong, or empty. `present` has a bit for each field that is there.
std::string check_rule(const Rule& rule, const ObjectType& type, std::uint64_t present,
                       const RuleValues& values);

}  // namespace polymux::contract
