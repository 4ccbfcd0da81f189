// Python objects as the checker reads them.
#pragma once

#include <list>
#include <string>
#include <string_view>

#include "interpreter.hpp"
#include "polymux/contract/value.hpp"
#include "walk.hpp"

namespace polymux::bindings {

/// A view of one object, which its maker keeps alive. It may run the caller's code, and raises what
/// that raises; a TypeError for what JSON does not have. Strings keep no UTF-8. GIL held.
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
    mutable std::list<std::string> heads_;  // Views of them are good while this is.
};

/// The fields of a request by their names on the wire: a dict. What is given for a field that takes
/// a file and is neither None nor plainly something else stands for the file.
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
