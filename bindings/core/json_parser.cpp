#include "json_parser.hpp"

#include <simdjson.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "errors.hpp"
#include "python_bytes.hpp"
#include "values.hpp"

namespace polymux::bindings {

namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

/// Same depth as the server's reader, and safe for any stack.
constexpr std::size_t deepest = 200;
/// simdjson's count of an array saturates here.
constexpr std::size_t saturated = 0xFFFFFF;

/// Converts one document to Python objects.
class Builder {
public:
    py::object build(element value) {
        switch (value.type()) {
            case element_type::STRING:
                return to_str(value.get_string().value_unsafe());
            case element_type::INT64:
                return owned(PyLong_FromLongLong(value.get_int64().value_unsafe()));
            case element_type::UINT64:
                return owned(PyLong_FromUnsignedLongLong(value.get_uint64().value_unsafe()));
            case element_type::DOUBLE:
                return owned(PyFloat_FromDouble(value.get_double().value_unsafe()));
            case element_type::BOOL:
                return py::bool_(value.get_bool().value_unsafe());
            case element_type::ARRAY:
                return build_list(value.get_array().value_unsafe());
            case element_type::OBJECT:
                return build_dict(value.get_object().value_unsafe());
            case element_type::NULL_VALUE:
                break;
        }
        return py::none();
    }

private:
    py::object build_list(const simdjson::dom::array& array) {
        const std::size_t count = array.size();
        if (count == saturated) {
            py::list list;
            for (const element item : array) {
                names_.yield_periodically();
                list.append(build(item));
            }
            return list;
        }
        py::object list = owned(PyList_New(static_cast<Py_ssize_t>(count)));
        Py_ssize_t index = 0;
        for (const element item : array) {
            names_.yield_periodically();
            // The list is not shared yet, so setting cannot fail.
            PyList_SetItem(list.ptr(), index++, build(item).release().ptr());
        }
        return list;
    }

    py::object build_dict(const simdjson::dom::object& object) {
        py::object dict = owned(PyDict_New());
        for (const auto& [name, value] : object) {
            names_.yield_periodically();
            const py::object key = names_.str(name);
            const py::object member = build(value);
            if (PyDict_SetItem(dict.ptr(), key.ptr(), member.ptr()) != 0) {
                throw py::error_already_set();
            }
        }
        return dict;
    }

    MemberNames names_;  // In the parser's memory, which outlives the builder.
};

const char* reason(simdjson::error_code code) {
    switch (code) {
        case simdjson::EMPTY:
            return "it is empty";
        case simdjson::DEPTH_ERROR:
            return "nested too deeply (allowed 200 levels)";
        case simdjson::UTF8_ERROR:
            return "it is not valid UTF-8";
        case simdjson::STRING_ERROR:
            return "a string in it has an invalid escape or a lone surrogate";
        case simdjson::UNESCAPED_CHARS:
            return "a string in it has a control character";
        case simdjson::UNCLOSED_STRING:
            return "it ends inside a string";
        default:
            return "it is not valid JSON";
    }
}

py::object fallback(const char* function, const py::object& body, const char* argument) {
    return invoke(py::module_::import("polymux._native.json_numbers").attr(function),
                  py::make_tuple(py::bytes(body), argument));
}

py::object parse_json(const py::object& body) {
    const HeldBuffer held(body);
    const auto bytes = held.bytes();
    const bool large = bytes.size() >= large_json_bytes;
    // One per thread keeps its memory. A nested call during conversion, from a finalizer that the
    // garbage collector runs, finds none and creates another one.
    static thread_local std::unique_ptr<simdjson::dom::parser> kept_parser;
    auto owned_parser = std::move(kept_parser);
    if (large || owned_parser == nullptr) owned_parser = std::make_unique<simdjson::dom::parser>();
    simdjson::dom::parser& parser = *owned_parser;

    element root;
    simdjson::error_code code = simdjson::SUCCESS;
    const auto parse = [&] {
        if (parser.capacity() < bytes.size() || parser.max_depth() != deepest) {
            code = parser.allocate(std::max(bytes.size(), std::size_t{4096}), deepest);
        }
        if (code == simdjson::SUCCESS) {
            code = parser.parse(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size())
                       .get(root);
        }
    };
    // Immutable memory may be read without the GIL.
    if (large && PyBytes_CheckExact(body.ptr()) != 0) {
        without_gil(parse);
    } else {
        parse();
    }
    switch (code) {
        case simdjson::SUCCESS: {
            py::object value = Builder().build(root);
            if (!large) kept_parser = std::move(owned_parser);
            return value;
        }
        case simdjson::MEMALLOC:
            PyErr_NoMemory();
            throw py::error_already_set();
        case simdjson::NUMBER_ERROR:
        case simdjson::BIGINT_ERROR:
            // Beyond 64 bits or a double, or not a number: rare, and Python can decide.
            return fallback("parse_unusual", body, "");
        default:
            raise_object(fallback("refusal", body, reason(code)), {});
    }
}

}  // namespace

void register_json_parser(py::module_& module) {
    module.def("parse_json", &parse_json, py::arg("body"),
               "Return a JSON document as None, bool, int, float, str, list and dict.");
}

}  // namespace polymux::bindings
