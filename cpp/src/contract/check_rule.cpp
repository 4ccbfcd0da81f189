#include <algorithm>

#include "contract/check_field.hpp"
#include "contract/display.hpp"

namespace polymux::contract {

namespace {

std::string names(std::span<const std::string_view> fields, std::string_view last_word) {
    std::string text;
    for (std::size_t index = 0; index < fields.size(); ++index) {
        if (index > 0) {
            text +=
                index + 1 == fields.size() ? ' ' + std::string(last_word) + ' ' : std::string(", ");
        }
        text += fields[index];
    }
    return text;
}

}  // namespace

std::string check_rule(const Rule& rule, const ObjectType& type, std::uint64_t present,
                       const RuleValues& values) {
    const auto is_present = [&](std::string_view name) {
        const Field* const field = type.find(name);
        return field != nullptr && (present >> type.index_of(*field) & 1U) != 0;
    };
    const auto count = std::ranges::count_if(rule.fields, is_present);
    const std::string first(rule.fields.front());
    switch (rule.kind) {
        case Rule::Kind::exactly_one:
            if (count == 1) return {};
            return count == 0 ? "one of " + names(rule.fields, "or") + " is required"
                              : "only one of " + names(rule.fields, "and") + " can be used";
        case Rule::Kind::at_most_one:
            if (count <= 1) return {};
            return "only one of " + names(rule.fields, "and") + " can be used";
        case Rule::Kind::needs:
            if (!is_present(rule.fields[0]) || is_present(rule.fields[1])) return {};
            return first + ": requires " + std::string(rule.fields[1]);
        case Rule::Kind::ascending: {
            const double* const low = values.number_of(rule.fields[0]);
            const double* const high = values.number_of(rule.fields[1]);
            if (low == nullptr || high == nullptr || *low < *high) return {};
            return first + ": must be less than " + std::string(rule.fields[1]) + " (got " +
                   plain_number(*low) + " and " + plain_number(*high) + ")";
        }
        case Rule::Kind::required_unless:
            if (count > 0) return {};
            return first + ": is missing";
        case Rule::Kind::names_field: {
            const std::string* const name = values.text_of(first);
            if (name == nullptr || type.find(*name) == nullptr || is_present(*name)) return {};
            return *name + ": is missing, but " + first + " requires it";
        }
    }
    return {};
}

}  // namespace polymux::contract
