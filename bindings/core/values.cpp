#include "values.hpp"

#include <limits>

namespace polymux::bindings {

namespace {

constexpr std::size_t max_cached_name_length = 32;

py::object to_list(const contract::ValueSource& value, MemberNames& names) {
    py::object list = owned(PyList_New(static_cast<Py_ssize_t>(value.size())));
    Py_ssize_t index = 0;
    value.items([&](const contract::ValueSource& item) {
        names.yield_periodically();
        // The list is not shared yet, so setting cannot fail.
        PyList_SetItem(list.ptr(), index++, to_python(item, names).release().ptr());
        return true;
    });
    return list;
}

py::object to_dict(const contract::ValueSource& value, MemberNames& names) {
    py::object dict = owned(PyDict_New());
    value.members([&](std::string_view name, const contract::ValueSource& member) {
        names.yield_periodically();
        const py::object key = names.str(name);
        const py::object item = to_python(member, names);
        if (PyDict_SetItem(dict.ptr(), key.ptr(), item.ptr()) != 0) throw py::error_already_set();
        return true;
    });
    return dict;
}

}  // namespace

py::object to_str(std::string_view utf8) {
    return owned(PyUnicode_FromStringAndSize(utf8.data(), static_cast<Py_ssize_t>(utf8.size())));
}

py::object MemberNames::str(std::string_view name) {
    if (name.empty() || name.size() > max_cached_name_length) return to_str(name);
    const std::size_t slot = (name.size() * 31 + static_cast<unsigned char>(name.front()) * 7 +
                              static_cast<unsigned char>(name.back())) %
                             names_.size();
    Name& kept = names_[slot];
    if (kept.text != name) {
        kept.object = to_str(name);
        kept.text = name;
    }
    return kept.object;
}

py::object to_python(const contract::Number& number) {
    return number.is_integer ? owned(PyLong_FromLongLong(number.integer))
                             : owned(PyFloat_FromDouble(number.value));
}

py::object to_python(const contract::ValueSource& value, MemberNames& names) {
    switch (value.type()) {
        case contract::type_string:
            return to_str(value.text_head(std::numeric_limits<std::size_t>::max()));
        case contract::type_integer:
        case contract::type_number:
            return to_python(value.number());
        case contract::type_boolean:
            return py::bool_(value.boolean());
        case contract::type_array:
            return to_list(value, names);
        case contract::type_object:
            return to_dict(value, names);
        case contract::type_file:
        case contract::type_null:
            break;
    }
    return py::none();
}

}  // namespace polymux::bindings
