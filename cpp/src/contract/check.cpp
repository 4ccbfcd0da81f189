#include "polymux/contract/check.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "contract/check_field.hpp"
#include "contract/display.hpp"
#include "polymux/contract/path_text.hpp"

namespace polymux::contract {

namespace {

constexpr std::size_t max_warnings = 64;

/// Location of a value. Frames live on the stack of the walk; the text is made only for a problem.
struct Path {
    const Path* parent = nullptr;
    std::string_view name = {};
    std::size_t index = no_index;

    static constexpr std::size_t no_index = std::numeric_limits<std::size_t>::max();

    bool is_root() const { return parent == nullptr; }
    Path member(std::string_view member_name) const {
        return {.parent = this, .name = member_name};
    }
    Path item(std::size_t number) const { return {.parent = this, .index = number}; }
    std::string text() const {
        if (is_root()) return {};
        std::string path = parent->text();
        if (index != no_index) {
            append_item(path, index);
        } else {
            append_member(path, name);
        }
        return path;
    }
};

/// One pass over a body: collects problems and reports accepted fields.
class Checker {
public:
    Checker(const Operation& operation, Side side, Report& report)
        : operation_(operation), side_(side), report_(report) {}

    void body(const ObjectType& type, const ValueSource& value, Accept accept, PassOn pass_on) {
        if (value.type() != type_object) {
            problem({}, "the request's body must be a JSON object, not " + display_value(value));
            return;
        }
        object(type, value, {}, &accept, &pass_on);
    }

private:
    /// A request can have millions of mistakes; collecting all of them helps no reader.
    bool is_full() const noexcept { return report_.count >= Report::max_counted_problems; }

    /// `message` follows the field's path: `=5: must be ...`, `: is missing`.
    void problem(const Path& path, std::string_view message) {
        ++report_.count;
        if (report_.problems.size() == Report::max_problems) return;
        std::string field = path.text();
        std::string text = field + std::string(message);
        report_.problems.push_back({std::move(field), std::move(text)});
    }

    /// `accept` and `pass_on` are for the body's members; null at deeper levels.
    void object(const ObjectType& type, const ValueSource& value, const Path& path,
                const Accept* accept, const PassOn* pass_on);
    void unknown(const ObjectType& type, std::string_view name, const ValueSource& value,
                 const Path& path, const PassOn* pass_on);
    void field(const Field& one, const ValueSource& value, const Path& path, const Accept* accept);
    void nested(const Field& one, const ValueSource& value, const Path& path);
    void anything(const ValueSource& value, const Path& path);
    void duplicates(std::size_t first_name, const Path& path);
    void required(const ObjectType& type, std::uint64_t present, const Path& path);
    void rules(const ObjectType& type, std::uint64_t present, const RuleValues& values,
               const Path& path);

    const Operation& operation_;
    Side side_;
    Report& report_;
    /// Unknown names of all objects that the walk is in, the innermost object's last.
    std::vector<std::string_view> names_;
};

void Checker::object(const ObjectType& type, const ValueSource& value, const Path& path,
                     const Accept* accept, const PassOn* pass_on) {
    std::uint64_t seen = 0;
    std::uint64_t present = 0;
    std::size_t hint = 0;
    const std::size_t first_name = names_.size();
    RuleValues values;
    value.members([&](std::string_view name, const ValueSource& member) {
        const Field* const one = type.find(name, hint);
        if (one == nullptr) {
            names_.push_back(name);
            unknown(type, name, member, path, pass_on);
            return !is_full();
        }
        const std::size_t index = type.index_of(*one);
        hint = index + 1;
        const std::uint64_t bit = std::uint64_t{1} << index;
        if ((seen & bit) != 0) {
            problem(path.member(name), ": duplicate field");
            return !is_full();
        }
        seen |= bit;
        if (is_absent(*one, member, path.is_root())) {
            if (path.is_root()) report_.absent.emplace_back(name);
            return !is_full();
        }
        present |= bit;
        values.keep(type, *one, member);
        field(*one, member, path.member(name), accept);
        return !is_full();
    });
    if (is_full()) return;  // Unvisited fields need not be missing.
    duplicates(first_name, path);
    required(type, present, path);
    rules(type, present, values, path);
}

void Checker::unknown(const ObjectType& type, std::string_view name, const ValueSource& value,
                      const Path& path, const PassOn* pass_on) {
    const Path here = path.member(name);
    const auto& refused = operation_.refused_fields;
    if (path.is_root() && std::ranges::find(refused, name) != refused.end()) {
        problem(here, ": cannot be set by clients");
        return;
    }
    if (type.unknown_fields == UnknownFields::pass) {
        anything(value, here);
        if (pass_on != nullptr) (*pass_on)(name, value);
        return;
    }
    std::string message = ": unknown field";
    const std::string_view nearest = nearest_name(name, type.fields);
    if (!nearest.empty()) message += " (did you mean " + std::string(nearest) + "?)";
    if (side_ == Side::client || type.unknown_fields == UnknownFields::refuse) {
        problem(here, message);
    } else if (report_.warnings.size() < max_warnings) {
        report_.warnings.push_back(here.text() + message);
    }
}

void Checker::field(const Field& one, const ValueSource& value, const Path& path,
                    const Accept* accept) {
    const FieldOutcome outcome = check_field(one, value);
    if (!outcome.message.empty()) {
        problem(path, outcome.message);
        return;
    }
    nested(one, value, path);
    if (accept != nullptr) (*accept)({one, value, outcome.number, outcome.boolean});
}

void Checker::nested(const Field& one, const ValueSource& value, const Path& path) {
    const ValueType type = value.type();
    if (type == type_object) {
        if (one.object != nullptr) {
            object(*one.object, value, path, nullptr, nullptr);
        } else {
            anything(value, path);
        }
    } else if (type == type_array) {
        std::size_t index = 0;
        value.items([&](const ValueSource& item) {
            const Path place = path.item(index++);
            if (one.item == nullptr) {
                anything(item, place);
            } else {
                field(*one.item, item, place, nullptr);
            }
            return !is_full();
        });
    }
}

/// JSON that no field describes: only duplicate names are wrong, and numbers that cannot be passed
/// through unchanged.
void Checker::anything(const ValueSource& value, const Path& path) {
    constexpr unsigned looked_into = type_object | type_array | type_integer | type_number;
    if ((value.type() & (type_integer | type_number)) != 0) {
        const std::string message = check_passed_number(value);
        if (!message.empty()) problem(path, message);
    } else if (value.type() == type_object) {
        const std::size_t first_name = names_.size();
        value.members([&](std::string_view name, const ValueSource& member) {
            names_.push_back(name);
            if ((member.type() & looked_into) != 0) anything(member, path.member(name));
            return !is_full();
        });
        duplicates(first_name, path);
    } else if (value.type() == type_array) {
        std::size_t index = 0;
        value.items([&](const ValueSource& item) {
            const Path place = path.item(index++);
            if ((item.type() & looked_into) != 0) anything(item, place);
            return !is_full();
        });
    }
}

bool all_differ(std::span<const std::string_view> names) {
    for (std::size_t index = 1; index < names.size(); ++index) {
        const auto before = names.first(index);
        if (std::ranges::find(before, names[index]) != before.end()) return false;
    }
    return true;
}

/// Checks the names from `first_name` on and removes them. Sorts instead of hashing, because chosen
/// names cannot make sorting slow.
void Checker::duplicates(std::size_t first_name, const Path& path) {
    constexpr std::size_t few = 8;
    const std::span names = std::span(names_).subspan(first_name);
    if (names.size() > few || !all_differ(names)) {
        std::ranges::sort(names);
        for (auto place = names.begin();
             (place = std::adjacent_find(place, names.end())) != names.end();) {
            problem(path.member(*place), ": duplicate field");
            place = std::find_if(place, names.end(),
                                 [name = *place](std::string_view other) { return other != name; });
        }
    }
    names_.resize(first_name);
}

void Checker::required(const ObjectType& type, std::uint64_t present, const Path& path) {
    for (std::size_t index = 0; index < type.fields.size(); ++index) {
        const Field& one = type.fields[index];
        if (one.required && (present >> index & 1U) == 0) {
            problem(path.member(one.name), ": is missing");
        }
    }
}

void Checker::rules(const ObjectType& type, std::uint64_t present, const RuleValues& values,
                    const Path& path) {
    for (const Rule& rule : type.rules) {
        const std::string message = check_rule(rule, type, present, values);
        if (!message.empty()) problem(path, (path.is_root() ? "" : ": ") + message);
    }
}

}  // namespace

std::string Report::message(const Operation& operation) const {
    constexpr std::size_t max_bytes = 1900;
    std::string text(operation.name);
    if (count == 1) return truncated(text + ": " + problems.front().message, max_bytes);
    text += ": " + std::to_string(count) + (count < max_counted_problems ? "" : " or more") +
            " problems";
    for (std::size_t index = 0; index < problems.size(); ++index) {
        text += (index == 0 ? ": " : "; ") + problems[index].message;
    }
    if (count > problems.size()) {
        const std::string more = "; and " + std::to_string(count - problems.size()) + " more";
        return truncated(text, max_bytes - more.size()) + more;
    }
    return truncated(text, max_bytes);
}

Report check(const Operation& operation, const Variant& variant, const ValueSource& body, Side side,
             Accept accept, PassOn pass_on) {
    Report report;
    Checker(operation, side, report).body(variant.body, body, accept, pass_on);
    return report;
}

void hand_on(const Variant& variant, const ValueSource& body, Accept accept, PassOn pass_on) {
    const ObjectType& type = variant.body;
    std::size_t hint = 0;
    body.members([&](std::string_view name, const ValueSource& member) {
        const Field* const one = type.find(name, hint);
        if (one == nullptr) {
            if (type.unknown_fields == UnknownFields::pass) pass_on(name, member);
            return true;
        }
        hint = type.index_of(*one) + 1;
        if (is_absent(*one, member, true)) return true;
        const FieldOutcome outcome = check_field(*one, member);
        accept({*one, member, outcome.number, outcome.boolean});
        return true;
    });
}

Report check(const Operation& operation, const Variant& variant, const ValueSource& body,
             Side side) {
    return check(
        operation, variant, body, side, [](const Accepted&) {},
        [](std::string_view, const ValueSource&) {});
}

}  // namespace polymux::contract
