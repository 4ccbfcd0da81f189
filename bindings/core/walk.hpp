// Walks Python objects that stand for JSON: their kinds, their positions, and their problems.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "interpreter.hpp"

namespace polymux::bindings {

/// Maximum nesting of containers; deeper ones are an error. Same as in the reader of received JSON.
constexpr int deepest_nesting = 200;

/// A container being walked, and its current member. Places live on the stack of the walk, each
/// with its parent; the path is made only for an error.
struct Place {
    const Place* parent = nullptr;
    PyObject* holder = nullptr;  ///< The container; the walk owns a reference.
    PyObject* name = nullptr;    ///< Name of the member, or null if `index` counts. Also owned.
    Py_ssize_t index = 0;
    int depth = 0;

    /// Enters a container. Raises if it is too deep or inside itself.
    static Place inside(PyObject* holder, const Place* parent);
};

enum class Kind : std::uint8_t {
    null,
    boolean,
    integer,
    number,
    string,
    list,   ///< Or a subclass.
    tuple,  ///< Or a subclass.
    dict,   ///< Exactly dict.
    pairs,  ///< A list of (name, value), made from another mapping or a dataclass.
    other,  ///< A type without a JSON form.
};

/// A value with its kind. `owned` and `also_owned` keep temporary objects alive.
struct Plain {
    Kind kind = Kind::other;
    PyObject* object = nullptr;
    PyObject* members_of = nullptr;  ///< For `pairs`: the object with these members.
    py::object owned = {};
    py::object also_owned = {};
};

/// The JSON value of an object: enums become their values, dataclasses and mappings their members.
/// May run the caller's code, and raises its exceptions.
Plain plain(PyObject* object);

/// Checks a member's name; raises unless it is a str. `at` is its position.
void require_name(PyObject* name, const Place& at);

/// Splits an item of a `Kind::pairs` list. Raises unless it is a pair.
void split_pair(PyObject* pair, PyObject*& name, PyObject*& value, const Place* at);

/// Raises InvalidRequestError for the value at that position; null stands for the whole.
[[noreturn]] void raise_at(const Place* at, std::string_view message);

/// Raises the TypeError for an object without a JSON form.
[[noreturn]] void raise_no_json(const Place* at, PyObject* object);

constexpr std::string_view lone_surrogate =
    "contains a lone surrogate, which is not a valid character";

}  // namespace polymux::bindings
