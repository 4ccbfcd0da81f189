#include "polymux/contract/contract.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "contract/generated/operations.hpp"

namespace polymux::contract {

namespace {

bool is_called(const Field& field, std::string_view name) {
    return field.name == name || std::ranges::find(field.aliases, name) != field.aliases.end();
}

/// Number of insertions, deletions, replacements and swaps of neighbors that turn one name into the
/// other, or more than `limit` (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b, std::size_t limit) {
    if (a.size() > b.size() + limit || b.size() > a.size() + limit) return limit + 1;
    std::vector<std::size_t> before(b.size() + 1);
    std::vector<std::size_t> last(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = std::min(row[j], before[j - 2] + 1);
            }
        }
        std::swap(before, last);
        std::swap(last, row);
    }
    return last[b.size()];
}

bool is_name_of(const Operation& operation, std::string_view name) {
    constexpr std::string_view prefix = "/api/v1/";
    if (operation.path == name || operation.path.substr(prefix.size()) == name) return true;
    const auto is_method_or_command = [name](std::string_view method) {
        return std::ranges::equal(method, name, [](char ours, char theirs) {
            return ours == theirs || (ours == '_' && theirs == '-');
        });
    };
    return operation.alias() == name || is_method_or_command(operation.name) ||
           std::ranges::any_of(operation.aliases, is_method_or_command);
}

}  // namespace

const Field* ObjectType::find(std::string_view wire_name, std::size_t hint) const {
    if (hint < fields.size() && fields[hint].name == wire_name) return &fields[hint];
    for (const Field& field : fields) {
        if (field.name == wire_name) return &field;
    }
    for (const Field& field : fields) {
        if (is_called(field, wire_name)) return &field;
    }
    return nullptr;
}

const Variant* Operation::find_variant(std::string_view model) const {
    const std::string_view wanted = model.substr(0, model.find(':'));
    for (const Variant& variant : variants) {
        if (!variant.model.empty() && variant.model == wanted) return &variant;
    }
    return nullptr;
}

std::span<const Operation* const> operations() {
    return generated::all;
}

const Operation* find_operation(std::string_view name) {
    for (const Operation* operation : operations()) {
        if (is_name_of(*operation, name)) return operation;
    }
    return nullptr;
}

std::string_view nearest_name(std::string_view misspelt, std::span<const Field> fields) {
    constexpr std::size_t max_length = 64;
    if (misspelt.empty() || misspelt.size() > max_length) return {};
    std::size_t best = 1 + std::min<std::size_t>(3, (misspelt.size() + 1) / 3);
    std::string_view nearest;
    for (const Field& field : fields) {
        const std::size_t found = distance(misspelt, field.name, best);
        if (found < best) {
            best = found;
            nearest = field.name;
        }
    }
    return nearest;
}

}  // namespace polymux::contract
