#include "values.hpp"

#include <limits>

namespace polymux::bindings {

namespace {

py::object to_list(const contract::ValueSource& value) {
    py::list list;
    value.items([&list](const contract::ValueSource& item) {
        list.append(to_python(item));
        return true;
    });
    return list;
}

py::object to_dict(const contract::ValueSource& value) {
    py::dict dict;
    value.members([&dict](std::string_view name, const contract::ValueSource& member) {
        dict[to_str(name)] = to_python(member);
        return true;
    });
    return dict;
}

}  // namespace

py::object to_str(std::string_view utf8) {
    return owned(PyUnicode_FromStringAndSize(utf8.data(), static_cast<Py_ssize_t>(utf8.size())));
}

py::object to_python(const contract::Number& number) {
    return number.is_integer ? owned(PyLong_FromLongLong(number.integer))
                             : owned(PyFloat_FromDouble(number.value));
}

py::object to_python(const contract::ValueSource& value) {
    switch (value.type()) {
        case contract::type_string:
            return to_str(value.text_head(std::numeric_limits<std::size_t>::max()));
        case contract::type_integer:
        case contract::type_number:
            return to_python(value.number());
        case contract::type_boolean:
            return py::bool_(value.boolean());
        case contract::type_array:
            return to_list(value);
        case contract::type_object:
            return to_dict(value);
        case contract::type_file:
        case contract::type_null:
            break;
    }
    return py::none();
}

}  // namespace polymux::bindings
