#include "walk.hpp"

#include <vector>

#include <pybind11/gil_safe_call_once.h>

#include "errors.hpp"
#include "polymux/contract/path_text.hpp"
#include "problems.hpp"

namespace polymux::bindings {

namespace {

/// A name as printable UTF-8, without caching it in the str.
std::string display_value(PyObject* name) {
    if (!PyUnicode_Check(name)) return "?";
    const py::object bytes = owned(PyUnicode_AsEncodedString(name, "utf-8", "backslashreplace"));
    return std::string(PyBytes_AS_STRING(bytes.ptr()),
                       static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr())));
}

std::string path_text(const Place* at) {
    std::vector<const Place*> places;
    for (; at != nullptr; at = at->parent) places.push_back(at);
    std::string path;
    for (auto place = places.rbegin(); place != places.rend(); ++place) {
        if ((*place)->name != nullptr) {
            contract::append_member(path, display_value((*place)->name));
        } else {
            contract::append_item(path, static_cast<std::size_t>((*place)->index));
        }
    }
    return path;
}

/// The path, or a word for the whole request.
std::string named(const std::string& path) {
    return path.empty() ? "the value" : path;
}

std::string type_name(PyObject* object) {
    return to_text(Py_TYPE(object)->tp_name).cast<std::string>();
}

/// A class of the standard library, imported at first use.
template <typename Tag>
const py::object& imported(const char* module, const char* name) {
    PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<py::object> storage;
    return storage
        .call_once_and_store_result(
            [module, name] { return py::module_::import(module).attr(name).cast<py::object>(); })
        .get_stored();
}

bool is_instance(PyObject* object, const py::object& of) {
    const int found = PyObject_IsInstance(object, of.ptr());
    if (found < 0) throw py::error_already_set();
    return found != 0;
}

bool is_enum(PyObject* object) {
    struct Tag;
    // Enums have a special metaclass; plain types do not.
    if (Py_IS_TYPE(reinterpret_cast<PyObject*>(Py_TYPE(object)), &PyType_Type)) return false;
    return is_instance(object, imported<Tag>("enum", "Enum"));
}

bool is_dataclass(PyObject* object) {
    return PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)),
                                  "__dataclass_fields__") != 0;
}

py::object members_of_dataclass(PyObject* object) {
    struct Tag;
    const py::object fields = imported<Tag>("dataclasses", "fields")(py::handle(object));
    py::list pairs;
    for (const py::handle field : fields) {
        const py::object name = field.attr("name");
        pairs.append(py::make_tuple(name, owned(PyObject_GetAttr(object, name.ptr()))));
    }
    return pairs;
}

bool is_mapping(PyObject* object) {
    struct Tag;
    return PyDict_Check(object) || is_instance(object, imported<Tag>("collections.abc", "Mapping"));
}

Kind kind_of(PyObject* object) {
    if (PyUnicode_Check(object)) return Kind::string;
    if (PyBool_Check(object)) return Kind::boolean;
    if (PyLong_Check(object)) return Kind::integer;
    if (PyFloat_Check(object)) return Kind::number;
    if (PyList_Check(object)) return Kind::list;
    if (PyTuple_Check(object)) return Kind::tuple;
    if (PyDict_CheckExact(object)) return Kind::dict;
    return object == Py_None ? Kind::null : Kind::other;
}

}  // namespace

Place Place::inside(PyObject* holder, const Place* parent) {
    const int depth = parent == nullptr ? 1 : parent->depth + 1;
    if (depth > deepest_nesting) {
        for (const Place* place = parent; place != nullptr; place = place->parent) {
            if (place->holder == holder) raise_at(place, "contains itself (circular reference)");
        }
        raise_at(parent,
                 "is nested too deeply (allowed " + std::to_string(deepest_nesting) + " levels)");
    }
    return {.parent = parent, .holder = holder, .depth = depth};
}

Plain plain(PyObject* object) {
    Plain found = {.object = object};
    // An enum's value may be a member of another enum; deeper nesting does not occur.
    for (int left = deepest_nesting; left > 0 && is_enum(found.object); --left) {
        found.owned = owned(PyObject_GetAttrString(found.object, "value"));
        found.object = found.owned.ptr();
    }
    found.kind = kind_of(found.object);
    if (found.kind != Kind::other) return found;
    if (is_dataclass(found.object)) {
        found.also_owned = members_of_dataclass(found.object);
    } else if (is_mapping(found.object)) {
        found.also_owned = owned(PyMapping_Items(found.object));
    } else {
        return found;
    }
    found.kind = Kind::pairs;
    found.members_of = found.object;
    found.object = found.also_owned.ptr();
    return found;
}

void require_name(PyObject* name, const Place& at) {
    if (PyUnicode_Check(name)) return;
    raise_at(at.parent, "has a key of type " + type_name(name) + ", but every key must be a str");
}

void split_pair(PyObject* pair, PyObject*& name, PyObject*& value, const Place* at) {
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) {
        raise_at(at, "is a mapping whose items() returns something other than pairs");
    }
    name = PyTuple_GET_ITEM(pair, 0);
    value = PyTuple_GET_ITEM(pair, 1);
}

void raise_at(const Place* at, std::string_view message) {
    const std::string path = path_text(at);
    raise_invalid_request(path, named(path) + ": " + std::string(message));
}

void raise_no_json(const Place* at, PyObject* object) {
    const std::string message = named(path_text(at)) + ": an object of type " + type_name(object) +
                                " cannot be sent as JSON (allowed: str, int, float, bool, None, "
                                "dict, list, tuple, dataclasses and enums)";
    PyErr_SetObject(PyExc_TypeError, to_text(message).ptr());
    throw py::error_already_set();
}

}  // namespace polymux::bindings
