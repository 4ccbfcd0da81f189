// Whether a request keeps the contract: all its problems at once, each with field, value and rule.
//
//     contract::Report report = contract::check(operation, variant, body, Side::client);
//     if (!report.ok()) throw error(report.message());
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "polymux/contract/contract.hpp"
#include "polymux/contract/value.hpp"
#include "polymux/result.hpp"

namespace polymux::contract {

/// Who checks: a client refuses fields that the contract does not have, since they are most likely
/// misspelt; a server leaves them out and says so. On the chat operations both pass them on.
enum class Side : std::uint8_t { client, server };

/// One thing that is wrong.
struct Problem {
    std::string field;    ///< Path of the field: `messages[0].role`.
    std::string message;  ///< Field, value and rule: `width=100: must be at least 256`.
};

/// What a check found.
struct Report {
    std::vector<Problem> problems;      ///< The first `max_problems` of them.
    std::size_t count = 0;              ///< All of them, or where the check ended.
    std::vector<std::string> warnings;  ///< Such as fields that are left out.

    static constexpr std::size_t max_problems = 20;
    /// The check ends when so many have been found.
    static constexpr std::size_t max_counted_problems = 10'000;

    bool ok() const noexcept { return count == 0; }
    /// One text of all problems, at most 1,900 bytes.
    std::string message(const Operation& operation) const;
};

/// A field that passed, and its value. A form's text is read already.
struct Accepted {
    const Field& field;
    const ValueSource& value;
    std::optional<Number> number = {};  ///< Read from a text that stands for one.
    std::optional<bool> boolean = {};   ///< Read from a text that stands for one.
};
using Accept = FunctionRef<void(const Accepted& accepted)>;
/// A member that the contract does not have and that is passed on.
using PassOn = FunctionRef<void(std::string_view name, const ValueSource& value)>;

/// Checks a request's body. `accept` and `pass_on` get what is to be used, in the body's order;
/// JSON's null and a form's empty text mean that an optional field is absent, and are left out.
Report check(const Operation& operation, const Variant& variant, const ValueSource& body, Side side,
             Accept accept, PassOn pass_on);
Report check(const Operation& operation, const Variant& variant, const ValueSource& body,
             Side side);

/// Gives `accept` and `pass_on` what `check` would give them, of a body that it has found good:
/// nothing is judged again.
void hand_on(const Variant& variant, const ValueSource& body, Accept accept, PassOn pass_on);

/// The encoding that a received request's header field Content-Type names (null where it is
/// missing): `application/json`, in UTF-8 if it says a charset, or `multipart/form-data` with a
/// boundary. Anything else is refused: a page of another origin can send forms and plain text
/// without asking, but neither of these with a token. Source: RFC 9110, 8.3.
Result<Encoding> encoding_of(std::optional<std::string_view> content_type);

/// Which variant a request is for, from the query parameter `model` (null where it is missing) and
/// the body's encoding; or what is wrong.
Result<const Variant*> choose_variant(const Operation& operation,
                                      std::optional<std::string_view> model, Encoding encoding);

/// Which variant a client means: that of the model if one is named, else the first one that one of
/// the given fields chooses, else the operation's first. `is_given`: whether a field, by its wire
/// name, has a value.
Result<const Variant*> choose_variant(const Operation& operation,
                                      std::optional<std::string_view> model,
                                      FunctionRef<bool(std::string_view field)> is_given);

}  // namespace polymux::contract
