// How the checker reads a value, wherever it lives: parsed JSON, form fields, Python objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "polymux/contract/contract.hpp"
#include "polymux/function_ref.hpp"

namespace polymux::contract {

/// A number, as far as a double and 64 bits can say.
struct Number {
    double value = 0.0;
    std::int64_t integer = 0;  ///< Where `is_integer` and `fits`.
    bool is_integer = false;
    bool fits = true;  ///< False for an integer beyond 64 bits.
};

/// A view of one value. Views are made on the stack of a visit and die with it.
class ValueSource {
public:
    using Member = FunctionRef<bool(std::string_view name, const ValueSource& value)>;
    using Item = FunctionRef<bool(const ValueSource& value)>;

    ValueSource() = default;
    ValueSource(const ValueSource&) = delete;
    ValueSource& operator=(const ValueSource&) = delete;
    virtual ~ValueSource() = default;

    /// Exactly one type. A whole number is an integer, `5.0` is a number.
    virtual ValueType type() const = 0;

    /// True for a form field: its text may stand for a number or a boolean.
    virtual bool is_form_text() const { return false; }

    // The rest answers for values of the type it names; others are never asked.

    /// Of a text: its length in code points, at least as far as `limit`.
    virtual std::size_t text_length(std::size_t /*limit*/) const { return 0; }
    /// Of a text: its first code points as UTF-8, as many as asked for; good while the value is.
    virtual std::string_view text_head(std::size_t /*code_points*/) const { return {}; }
    /// Of an integer or a number.
    virtual Number number() const { return {}; }
    virtual bool boolean() const { return false; }
    /// Of an array or an object.
    virtual std::size_t size() const { return 0; }
    /// Visits an object's members, or an array's items, until a visitor returns false.
    virtual void members(Member /*visit*/) const {}
    virtual void items(Item /*visit*/) const {}
};

}  // namespace polymux::contract
