// Adapts Python objects to the checker.
#pragma once

#include <list>
#include <string>
#include <string_view>

#include "interpreter.hpp"
#include "polymux/contract/value.hpp"
#include "walk.hpp"

namespace polymux::bindings {

/// A view of one object, which the creator keeps alive. It may run the caller's code, and raises
/// its exceptions, and TypeError for types without a JSON form. Does not cache UTF-8 in strings.
/// GIL held.
class PythonValue final : public contract::ValueSource {
public:
    PythonValue(PyObject* object, const Place* at);

    contract::ValueType type() const override { return type_; }
    std::size_t text_length(std::size_t limit) const override;
    std::string_view text_head(std::size_t code_points) const override;
    contract::Number number() const override;
    bool boolean() const override;
    std::size_t size() const override;
    void members(Member visit) const override;
    void items(Item visit) const override;

private:
    Plain plain_;
    const Place* at_;
    contract::ValueType type_;
    mutable std::list<std::string> heads_;  // Views of these are valid as long as this object.
};

/// The fields of a request by their wire names: a dict. For a field that accepts a file, any value
/// that is not None and not clearly of another type stands for the file.
class PythonBody final : public contract::ValueSource {
public:
    PythonBody(PyObject* dict, const contract::ObjectType& type) : dict_(dict), type_(type) {}

    contract::ValueType type() const override { return contract::type_object; }
    std::size_t size() const override;
    void members(Member visit) const override;

private:
    PyObject* dict_;
    const contract::ObjectType& type_;
};

}  // namespace polymux::bindings
