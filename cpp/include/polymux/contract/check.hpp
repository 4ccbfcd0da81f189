// Checks a request against the contract. Reports all problems at once, each with field, value and
// rule.
//
//     contract::Report report = contract::check(operation, variant, body, Side::client);
//     if (!report.ok()) throw error(report.message());
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "polymux/contract/contract.hpp"
#include "polymux/contract/value.hpp"
#include "polymux/result.hpp"

namespace polymux::contract {

/// Who checks. A client rejects unknown fields, because they are most likely misspelled. A server
/// drops them and adds a warning. Both pass unknown fields through on chat operations.
enum class Side : std::uint8_t { client, server };

struct Problem {
    std::string field;    ///< Path of the field: `messages[0].role`.
    std::string message;  ///< Field, value and rule: `width=100: must be at least 256`.
};

/// Result of a check.
struct Report {
    std::vector<Problem> problems;      ///< The first `max_problems` problems.
    std::size_t count = 0;              ///< All problems, or `max_counted_problems`.
    std::vector<std::string> warnings;  ///< For example dropped fields.
    std::vector<std::string>
        absent;  ///< Fields of the body whose value means that they are absent.

    static constexpr std::size_t max_problems = 20;
    /// The check stops after this many problems.
    static constexpr std::size_t max_counted_problems = 10'000;

    bool ok() const noexcept { return count == 0; }
    /// One text that lists all problems, at most 1,900 bytes.
    std::string message(const Operation& operation) const;
};

/// A valid field and its value. Texts of form fields are already parsed, and a whole number such as
/// `2.0` for an integer is converted.
struct Accepted {
    const Field& field;
    const ValueSource& value;
    std::optional<Number> number = {};  ///< Parsed or converted.
    std::optional<bool> boolean = {};   ///< Parsed from a text that stands for a boolean.
};
using Accept = FunctionRef<void(const Accepted& accepted)>;
/// An unknown member that is passed through.
using PassOn = FunctionRef<void(std::string_view name, const ValueSource& value)>;

/// Checks a request's body. `accept` and `pass_on` receive the usable fields in the order of the
/// body. Values that mean that an optional field is absent are skipped: JSON null, and an empty
/// text unless the field accepts any text.
Report check(const Operation& operation, const Variant& variant, const ValueSource& body, Side side,
             Accept accept, PassOn pass_on);
Report check(const Operation& operation, const Variant& variant, const ValueSource& body,
             Side side);

/// Calls `accept` and `pass_on` as `check` would, for a body that `check` accepted. Does not
/// validate again.
void hand_on(const Variant& variant, const ValueSource& body, Accept accept, PassOn pass_on);

/// Parses the Content-Type header of a request (null if missing): `application/json`, in UTF-8 if
/// it names a charset, or `multipart/form-data` with a boundary. Rejects all other types, because a
/// page of another origin can send forms and plain text without a CORS preflight, but cannot send
/// these two with a token. Source: RFC 9110, 8.3. Also rejects a type that is not `accepted`.
Result<Encoding> encoding_of(std::optional<std::string_view> content_type,
                             std::span<const Encoding> accepted);

/// Selects the variant from the query parameter `model` (null if missing) and the body's encoding.
/// Returns an error if none matches.
Result<const Variant*> choose_variant(const Operation& operation,
                                      std::optional<std::string_view> model, Encoding encoding);

/// Selects the variant that a client means: the variant of `model` if given, otherwise the first
/// one that a given field selects, otherwise the operation's first. `is_given` reports whether a
/// field, by its wire name, has a value.
Result<const Variant*> choose_variant(const Operation& operation,
                                      std::optional<std::string_view> model,
                                      FunctionRef<bool(std::string_view field)> is_given);

}  // namespace polymux::contract
