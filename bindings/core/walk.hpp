// Walking Python objects that stand for JSON: what each is, where it is, and what is wrong with it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "interpreter.hpp"

namespace polymux::bindings {

/// Containers inside each other; a deeper one is an error. The reader of received JSON has the
/// same.
constexpr int deepest_nesting = 200;

/// A container that is walked, and which of its members is being looked at. Places lie on the stack
/// of the walk, each with its parent; the path is made only for an error.
struct Place {
    const Place* parent = nullptr;
    PyObject* holder = nullptr;  ///< The container; the walk owns a reference.
    PyObject* name = nullptr;    ///< Of the member, or null where `index` counts. Likewise owned.
    Py_ssize_t index = 0;
    int depth = 0;

    /// Enters a container. Raises where it is too deep or inside itself.
    static Place inside(PyObject* holder, const Place* parent);
};

enum class Kind : std::uint8_t {
    null,
    boolean,
    integer,
    number,
    string,
    list,   ///< Or a class derived from it.
    tuple,  ///< Or a class derived from it.
    dict,   ///< Exactly.
    pairs,  ///< A list of (name, value), made from another mapping or from a dataclass.
    other,  ///< Nothing that JSON has.
};

/// A value with its kind. `owned` and `also_owned` keep what was made on the way.
struct Plain {
    Kind kind = Kind::other;
    PyObject* object = nullptr;
    PyObject* members_of = nullptr;  ///< Of `pairs`: the object whose members they are.
    py::object owned = {};
    py::object also_owned = {};
};

/// What an object stands for: enums are their values, dataclasses and mappings their members. May
/// run the caller's code, and raises what that raises.
Plain plain(PyObject* object);

/// A member's name; raises unless it is a str. `at` says which one.
void require_name(PyObject* name, const Place& at);

/// One pair of a `Kind::pairs` list: raises unless it is one.
void split_pair(PyObject* pair, PyObject*& name, PyObject*& value, const Place* at);

/// Raises an InvalidRequestError for the value at that place; null stands for the whole.
[[noreturn]] void raise_at(const Place* at, std::string_view message);

/// Raises the TypeError for an object that JSON has nothing for.
[[noreturn]] void raise_no_json(const Place* at, PyObject* object);

constexpr std::string_view lone_surrogate =
    "holds half of a surrogate pair, which is no character and cannot be sent";

}  // namespace polymux::bindings
