#include "json_writer.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shared_members.hpp"
#include "walk.hpp"

namespace polymux::bindings {

namespace {

/// A set of the plain str names of a dict; empty for null.
py::object plain_names(PyObject* dict) {
    py::object names = owned(PySet_New(nullptr));
    if (dict == nullptr) return names;
    const py::object keys = owned(PyDict_Keys(dict));
    for (Py_ssize_t index = 0; index < PyList_GET_SIZE(keys.ptr()); ++index) {
        PyObject* const key = PyList_GET_ITEM(keys.ptr(), index);
        if (PyUnicode_CheckExact(key) && PySet_Add(names.ptr(), key) != 0)
            throw py::error_already_set();
    }
    return names;
}

class Writer {
public:
    explicit Writer(json::Buffer& buffer) : buffer_(buffer) {}

    /// The caller keeps `object` alive.
    void value(PyObject* object, const Place* at) {
        if (!scalar(object, at)) container(object, at);
    }

private:
    /// Writes values that never run the caller's code. Returns false for all others.
    bool scalar(PyObject* object, const Place* at);
    void container(PyObject* object, const Place* at);
    void converted(PyObject* object, const Place* at);
    void text(PyObject* object, const Place* at);
    void member_name(char before, PyObject* name, const Place* at);
    void integer(PyObject* object);
    void large_integer(PyObject* object);
    void number(PyObject* object, const Place* at);
    void dict(PyObject* object, const Place* at);
    void unusual_name(PyObject* name, const Place& at, PyObject* dict, py::object& seen);
    void pairs(PyObject* list, PyObject* of, const Place* at);
    void items(PyObject* sequence, const Place* at);

    json::Buffer& buffer_;
};

bool Writer::scalar(PyObject* object, const Place* at) {
    const PyTypeObject* const type = Py_TYPE(object);
    if (type == &PyUnicode_Type) {
        text(object, at);
    } else if (type == &PyLong_Type) {
        integer(object);
    } else if (object == Py_None) {
        buffer_.append("null");
    } else if (object == Py_True) {
        buffer_.append("true");
    } else if (object == Py_False) {
        buffer_.append("false");
    } else if (type == &PyFloat_Type) {
        number(object, at);
    } else {
        return false;
    }
    return true;
}

void Writer::container(PyObject* object, const Place* at) {
    const PyTypeObject* const type = Py_TYPE(object);
    if (type == &PyDict_Type) {
        dict(object, at);
    } else if (type == &PyList_Type || type == &PyTuple_Type) {
        items(object, at);
    } else {
        converted(object, at);
    }
}

void Writer::converted(PyObject* object, const Place* at) {
    const Plain found = plain(object);
    switch (found.kind) {
        case Kind::string:
            return text(found.object, at);
        case Kind::integer:
            return integer(found.object);
        case Kind::number:
            return number(found.object, at);
        case Kind::null:
        case Kind::boolean:
            scalar(found.object, at);
            return;
        case Kind::list:
        case Kind::tuple:
            return items(found.object, at);
        case Kind::dict:
            return dict(found.object, at);
        case Kind::pairs:
            return pairs(found.object, found.members_of, at);
        case Kind::other:
            break;
    }
    raise_no_json(at, found.object);
}

void Writer::text(PyObject* object, const Place* at) {
#if PY_VERSION_HEX < 0x030C0000
    if (PyUnicode_READY(object) != 0) throw py::error_already_set();
#endif
    const auto length = static_cast<std::size_t>(PyUnicode_GET_LENGTH(object));
    const void* const data = PyUnicode_DATA(object);
    bool real = true;
    if (PyUnicode_IS_ASCII(object)) {
        json::append_utf8(buffer_, {static_cast<const char*>(data), length});
    } else if (PyUnicode_KIND(object) == PyUnicode_1BYTE_KIND) {
        json::append_latin1(buffer_, {static_cast<const std::uint8_t*>(data), length});
    } else if (PyUnicode_KIND(object) == PyUnicode_2BYTE_KIND) {
        real = json::append_ucs2(buffer_, {static_cast<const std::uint16_t*>(data), length});
    } else {
        real = json::append_ucs4(buffer_, {static_cast<const std::uint32_t*>(data), length});
    }
    if (!real) raise_at(at, lone_surrogate);
}

void Writer::member_name(char before, PyObject* name, const Place* at) {
#if PY_VERSION_HEX < 0x030C0000
    if (PyUnicode_READY(name) != 0) throw py::error_already_set();
#endif
    if (PyUnicode_IS_ASCII(name)) {
        const auto length = static_cast<std::size_t>(PyUnicode_GET_LENGTH(name));
        json::append_name(buffer_, before,
                          {static_cast<const char*>(PyUnicode_DATA(name)), length});
        return;
    }
    buffer_.append(before);
    text(name, at);
    buffer_.append(':');
}

void Writer::integer(PyObject* object) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow == 0) {
        json::append_integer(buffer_, value);
    } else {
        large_integer(object);
    }
}

/// In pieces, because Python refuses to print thousands of digits at once.
void Writer::large_integer(PyObject* object) {
    constexpr int piece_digits = 500;
    const py::object zero = owned(PyLong_FromLong(0));
    const int negative = PyObject_RichCompareBool(object, zero.ptr(), Py_LT);
    if (negative != 0) buffer_.append('-');
    const py::object ten = owned(PyLong_FromLong(10));
    const py::object exponent = owned(PyLong_FromLong(piece_digits));
    const py::object unit = owned(PyNumber_Power(ten.ptr(), exponent.ptr(), Py_None));
    py::object rest = owned(PyLong_Type.tp_as_number->nb_absolute(object));
    std::vector<std::string> pieces;
    do {
        const py::object parts = owned(PyNumber_Divmod(rest.ptr(), unit.ptr()));
        rest = py::reinterpret_borrow<py::object>(PyTuple_GetItem(parts.ptr(), 0));
        const py::object digits = owned(PyObject_Str(PyTuple_GetItem(parts.ptr(), 1)));
        pieces.push_back(py::str(digits).cast<std::string>());
    } while (PyObject_IsTrue(rest.ptr()) == 1);
    buffer_.append(pieces.back());
    pieces.pop_back();
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
        buffer_.append(std::string(piece_digits - piece->size(), '0') + *piece);
    }
}

void Writer::number(PyObject* object, const Place* at) {
    if (!json::append_number(buffer_, PyFloat_AS_DOUBLE(object))) {
        raise_at(at, "is NaN or infinite, which JSON does not support");
    }
}

/// Handles names that are not plain str, and names of other mappings: two names that differ in the
/// mapping can have the same text. `seen` collects them, starting with the plain names of `dict` if
/// given.
void Writer::unusual_name(PyObject* name, const Place& at, PyObject* dict, py::object& seen) {
    require_name(name, at);
    if (!seen) seen = plain_names(dict);
    const py::object spelled = owned(PyUnicode_FromObject(name));
    const int twice = PySet_Contains(seen.ptr(), spelled.ptr());
    if (twice < 0 || PySet_Add(seen.ptr(), spelled.ptr()) != 0) throw py::error_already_set();
    if (twice > 0) raise_at(&at, "duplicate key");
}

void Writer::dict(PyObject* object, const Place* at) {
    Place here = Place::inside(object, at);
    const Py_ssize_t size = PyDict_Size(object);
    Py_ssize_t position = 0;
    Held name_held;
    Held value_held;
    PyObject* name = nullptr;
    PyObject* member = nullptr;
    py::object seen;
    char before = '{';
    while (next_member(object, position, name, member, name_held, value_held)) {
        here.name = name;
        if (!PyUnicode_CheckExact(name)) unusual_name(name, here, object, seen);
        member_name(before, name, &here);
        before = ',';
        if (scalar(member, &here)) continue;
        const Held name_kept(name);
        const Held member_kept(member);
        container(member, &here);
        if (PyDict_Size(object) != size) raise_at(at, "was changed while it was being written");
    }
    if (before == '{') buffer_.append('{');
    buffer_.append('}');
}

void Writer::pairs(PyObject* list, PyObject* of, const Place* at) {
    Place here = Place::inside(of, at);
    py::object seen;
    char before = '{';
    for (Py_ssize_t index = 0;; ++index) {
        const py::object pair = py::reinterpret_steal<py::object>(item_at(list, index));
        if (!pair) break;
        PyObject* name = nullptr;
        PyObject* member = nullptr;
        split_pair(pair.ptr(), name, member, at);
        here.name = name;
        unusual_name(name, here, nullptr, seen);
        member_name(before, name, &here);
        before = ',';
        value(member, &here);
    }
    if (before == '{') buffer_.append('{');
    buffer_.append('}');
}

void Writer::items(PyObject* sequence, const Place* at) {
    Place here = Place::inside(sequence, at);
    char before = '[';
    for (;; ++here.index) {
        Held item;
        item.steal(item_at(sequence, here.index));
        if (item.get() == nullptr) break;
        buffer_.append(before);
        before = ',';
        value(item.get(), &here);
    }
    if (before == '[') buffer_.append('[');
    buffer_.append(']');
}

}  // namespace

void write_json(json::Buffer& buffer, PyObject* object) {
    Writer(buffer).value(object, nullptr);
}

}  // namespace polymux::bindings
