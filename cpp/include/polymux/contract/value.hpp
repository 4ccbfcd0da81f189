// How the checker reads a value from parsed JSON, form fields or Python objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "polymux/contract/contract.hpp"
#include "polymux/function_ref.hpp"

namespace polymux::contract {

/// A number in the precision of a double and of 64 bits.
struct Number {
    double value = 0.0;
    std::int64_t integer = 0;  ///< Valid if `is_integer` and `fits`.
    bool is_integer = false;
    bool fits = true;  ///< False for an integer beyond 64 bits.
};

/// A view of one value. Views live on the stack during a visit.
class ValueSource {
public:
    using Member = FunctionRef<bool(std::string_view name, const ValueSource& value)>;
    using Item = FunctionRef<bool(const ValueSource& value)>;

    ValueSource() = default;
    ValueSource(const ValueSource&) = delete;
    ValueSource& operator=(const ValueSource&) = delete;
    virtual ~ValueSource() = default;

    /// Exactly one type. A whole number is an integer; `5.0` is a number.
    virtual ValueType type() const = 0;

    /// True for a form field, whose text may stand for a number or a boolean.
    virtual bool is_form_text() const { return false; }

    // The checker calls the functions below only for values of the type that they name.

    /// Text: the length in code points, counted at least up to `limit`.
    virtual std::size_t text_length(std::size_t /*limit*/) const { return 0; }
    /// Text: the first `code_points` code points as UTF-8. Valid as long as the value.
    virtual std::string_view text_head(std::size_t /*code_points*/) const { return {}; }
    /// Integer or number.
    virtual Number number() const { return {}; }
    virtual bool boolean() const { return false; }
    /// Array or object.
    virtual std::size_t size() const { return 0; }
    /// Visits the members of an object, or the items of an array, until the visitor returns false.
    virtual void members(Member /*visit*/) const {}
    virtual void items(Item /*visit*/) const {}
};

}  // namespace polymux::contract
