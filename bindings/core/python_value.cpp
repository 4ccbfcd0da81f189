#include "python_value.hpp"

#include <cmath>
#include <limits>

namespace polymux::bindings {

namespace {

std::string_view ascii_of(PyObject* text) {
    return {static_cast<const char*>(PyUnicode_DATA(text)),
            static_cast<std::size_t>(PyUnicode_GET_LENGTH(text))};
}

/// The first characters as newly encoded UTF-8; the str caches no copy.
std::string encoded(PyObject* text, Py_ssize_t count, const Place* at) {
    const py::object head = owned(PyUnicode_Substring(text, 0, count));
    const auto bytes = py::reinterpret_steal<py::object>(PyUnicode_AsUTF8String(head.ptr()));
    if (!bytes) {
        if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError) == 0) throw py::error_already_set();
        PyErr_Clear();
        raise_at(at, lone_surrogate);
    }
    return std::string(PyBytes_AS_STRING(bytes.ptr()),
                       static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr())));
}

contract::ValueType type_of(Kind kind) {
    switch (kind) {
        case Kind::string:
            return contract::type_string;
        case Kind::integer:
            return contract::type_integer;
        case Kind::number:
            return contract::type_number;
        case Kind::boolean:
            return contract::type_boolean;
        case Kind::list:
        case Kind::tuple:
            return contract::type_array;
        case Kind::dict:
        case Kind::pairs:
            return contract::type_object;
        case Kind::null:
        case Kind::other:
            break;
    }
    return contract::type_null;
}

/// The current members of a dict, or the pairs of another mapping.
py::object pairs_of(const Plain& plain) {
    return plain.kind == Kind::dict ? owned(PyDict_Items(plain.object))
                                    : py::reinterpret_borrow<py::object>(plain.object);
}

/// Names as UTF-8, valid while all members are visited.
class Names {
public:
    std::string_view add(PyObject* name, const Place& at) {
        require_name(name, at);
        if (PyUnicode_IS_ASCII(name) != 0) return ascii_of(name);
        return made_.emplace_back(encoded(name, PyUnicode_GET_LENGTH(name), &at));
    }

private:
    std::list<std::string> made_;
};

/// Calls `visit(name, member, place)` until it returns false. The pairs live until all are visited.
template <typename Visit>
void each_pair(const py::object& pairs, Place here, Visit visit) {
    Names names;
    const Py_ssize_t count = PyList_GET_SIZE(pairs.ptr());
    for (Py_ssize_t index = 0; index < count; ++index) {
        PyObject* name = nullptr;
        PyObject* member = nullptr;
        split_pair(PyList_GET_ITEM(pairs.ptr(), index), name, member, here.parent);
        here.name = name;
        if (!visit(names.add(name, here), member, here)) return;
    }
}

/// A file in any accepted form.
class FileValue final : public contract::ValueSource {
public:
    contract::ValueType type() const override { return contract::type_file; }
};

/// Numbers, booleans, lists and dicts are not files; a str is a path, a tuple contains a name.
bool may_be_file(PyObject* object) {
    return object != Py_None && !PyLong_Check(object) && !PyFloat_Check(object) &&
           !PyList_Check(object) && !PyDict_Check(object);
}

}  // namespace

PythonValue::PythonValue(PyObject* object, const Place* at)
    : plain_(plain(object)), at_(at), type_(type_of(plain_.kind)) {
    if (plain_.kind == Kind::other) raise_no_json(at, object);
}

std::size_t PythonValue::text_length(std::size_t /*limit*/) const {
    return static_cast<std::size_t>(PyUnicode_GET_LENGTH(plain_.object));
}

std::string_view PythonValue::text_head(std::size_t code_points) const {
    const auto length = static_cast<std::size_t>(PyUnicode_GET_LENGTH(plain_.object));
    if (PyUnicode_IS_ASCII(plain_.object) != 0)
        return ascii_of(plain_.object).substr(0, code_points);
    const std::size_t count = std::min(code_points, length);
    return heads_.emplace_back(encoded(plain_.object, static_cast<Py_ssize_t>(count), at_));
}

contract::Number PythonValue::number() const {
    if (type_ == contract::type_number) return {.value = PyFloat_AS_DOUBLE(plain_.object)};
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(plain_.object, &overflow);
    if (overflow == 0) {
        return {.value = static_cast<double>(value), .integer = value, .is_integer = true};
    }
    const double infinity = std::numeric_limits<double>::infinity();
    return {.value = overflow < 0 ? -infinity : infinity, .is_integer = true, .fits = false};
}

bool PythonValue::boolean() const {
    return plain_.object == Py_True;
}

std::size_t PythonValue::size() const {
    const Py_ssize_t size = plain_.kind == Kind::tuple  ? PyTuple_GET_SIZE(plain_.object)
                            : plain_.kind == Kind::dict ? PyDict_Size(plain_.object)
                                                        : PyList_GET_SIZE(plain_.object);
    return static_cast<std::size_t>(size);
}

void PythonValue::members(Member visit) const {
    PyObject* const holder = plain_.kind == Kind::pairs ? plain_.members_of : plain_.object;
    each_pair(pairs_of(plain_), Place::inside(holder, at_),
              [&visit](std::string_view name, PyObject* member, const Place& here) {
                  return visit(name, PythonValue(member, &here));
              });
}

void PythonValue::items(Item visit) const {
    Place here = Place::inside(plain_.object, at_);
    // A snapshot, because the caller's code, or another thread, may change a list meanwhile.
    const py::object all = plain_.kind == Kind::tuple
                               ? py::reinterpret_borrow<py::object>(plain_.object)
                               : owned(PyList_AsTuple(plain_.object));
    for (; here.index < PyTuple_GET_SIZE(all.ptr()); ++here.index) {
        if (!visit(PythonValue(PyTuple_GET_ITEM(all.ptr(), here.index), &here))) return;
    }
}

std::size_t PythonBody::size() const {
    return static_cast<std::size_t>(PyDict_Size(dict_));
}

void PythonBody::members(Member visit) const {
    const auto one = [this, &visit](std::string_view name, PyObject* member, const Place& here) {
        const contract::Field* const field = type_.find(name);
        const bool takes_file = field != nullptr && (field->types & contract::type_file) != 0;
        if (takes_file && may_be_file(member)) return visit(name, FileValue());
        return visit(name, PythonValue(member, &here));
    };
    each_pair(owned(PyDict_Items(dict_)), Place::inside(dict_, nullptr), one);
}

}  // namespace polymux::bindings
