#include "contract.hpp"

#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <pybind11/stl.h>

#include "errors.hpp"
#include "polymux/contract/check.hpp"
#include "polymux/contract/form_body.hpp"
#include "polymux/contract/json_body.hpp"
#include "problems.hpp"
#include "python_value.hpp"
#include "shared_members.hpp"
#include "values.hpp"

namespace polymux::bindings {

namespace {

using contract::Encoding;
using contract::Operation;
using contract::Side;
using contract::Variant;

const Operation& operation_named(const std::string& name) {
    const Operation* const operation = contract::find_operation(name);
    if (operation == nullptr) {
        raise({.code = ErrorCode::invalid_argument,
               .message = "unknown operation " + py::repr(py::str(name)).cast<std::string>() +
                          ". Run 'polymux operations' to list them"});
    }
    return *operation;
}

py::str describe(const std::optional<std::string>& name) {
    return to_text(contract::describe(name ? &operation_named(*name) : nullptr));
}

Side side_of(bool server) {
    return server ? Side::server : Side::client;
}

/// Checks a body that only this thread can access, without the GIL.
contract::Report long_check(const Operation& operation, const Variant& variant,
                            const contract::ValueSource& body, bool server) {
    contract::Report report;
    bool has_memory = true;
    without_gil([&] {
        try {
            report = contract::check(operation, variant, body, side_of(server));
        } catch (const std::bad_alloc&) {
            has_memory = false;
        }
    });
    if (!has_memory) throw std::bad_alloc();
    return report;
}

/// The result of checking a request in Python: (variant's id, model, values, warnings).
class CheckedRequest {
public:
    CheckedRequest(const Operation& operation, const Variant& variant)
        : operation_(operation), variant_(variant) {}

    void run(const contract::ValueSource& body, bool server, const py::dict& files) {
        const contract::Report report = contract::check(
            operation_, variant_, body, side_of(server),
            [this, &files](const contract::Accepted& accepted) { keep(accepted, files); },
            [this](std::string_view name, const contract::ValueSource& value) {
                values_[names_.str(name)] = to_python(value, names_);
            });
        keep(report);
    }

    /// The same for a body with a long check, without the GIL. A second pass with the GIL creates
    /// the Python values.
    void run_long(const contract::ValueSource& body, bool server) {
        keep(long_check(operation_, variant_, body, server));
        contract::hand_on(
            variant_, body,
            [this](const contract::Accepted& accepted) { keep(accepted, py::dict()); },
            [this](std::string_view name, const contract::ValueSource& value) {
                names_.yield_periodically();
                values_[names_.str(name)] = to_python(value, names_);
            });
    }

    py::tuple finish() const {
        return py::make_tuple(to_text(variant_.id), to_text(variant_.model), values_, warnings_);
    }

private:
    void keep(const contract::Report& report) {
        if (!report.ok()) raise_problems(operation_, report);
        for (const std::string& warning : report.warnings) warnings_.append(to_text(warning));
    }

    void keep(const contract::Accepted& accepted, const py::dict& files) {
        const py::object name = to_str(accepted.field.name);
        if (accepted.number) {
            values_[name] = to_python(*accepted.number);
        } else if (accepted.boolean) {
            values_[name] = py::bool_(*accepted.boolean);
        } else if (accepted.value.type() == contract::type_file) {
            values_[name] = files[name];
        } else {
            values_[name] = to_python(accepted.value, names_);
        }
    }

    const Operation& operation_;
    const Variant& variant_;
    py::dict values_;
    MemberNames names_;
    py::list warnings_;
};

std::optional<std::string_view> view_of(const std::optional<std::string>& text) {
    if (!text) return {};
    return std::string_view(*text);
}

/// A parsed body. One reader per thread keeps its memory between requests. It is taken out during
/// use, because Python code that runs in between may call this again.
class ParsedBody {
public:
    ParsedBody(const py::buffer& body, std::size_t max_bytes) {
        const py::buffer_info bytes = body.request();
        const std::string_view text(static_cast<const char*>(bytes.ptr),
                                    static_cast<std::size_t>(bytes.size * bytes.itemsize));
        is_long_ = text.size() >= large_json_bytes;
        if (!is_long_) reader_ = std::move(spare());
        if (!reader_) reader_ = std::make_unique<contract::JsonReader>();
        Result<const contract::ValueSource*> read = Error{};
        const auto parse = [&] { read = reader_->read(text, max_bytes); };
        // Immutable memory may be read without the GIL.
        if (is_long_ && PyBytes_CheckExact(body.ptr()) != 0) {
            without_gil(parse);
        } else {
            parse();
        }
        value_ = value_or_raise(std::move(read));
    }
    ParsedBody(const ParsedBody&) = delete;
    ParsedBody& operator=(const ParsedBody&) = delete;
    ~ParsedBody() {
        if (!is_long_) spare() = std::move(reader_);
    }

    const contract::ValueSource& value() const { return *value_; }

    /// Whether to check it without the GIL and free its memory afterwards.
    bool is_long() const { return is_long_; }

private:
    static std::unique_ptr<contract::JsonReader>& spare() {
        static thread_local std::unique_ptr<contract::JsonReader> reader;
        return reader;
    }

    std::unique_ptr<contract::JsonReader> reader_;
    const contract::ValueSource* value_ = nullptr;
    bool is_long_ = false;
};

py::tuple read_json(const std::string& name, const std::optional<std::string>& model,
                    const py::buffer& body, bool server, std::size_t max_bytes) {
    const Operation& operation = operation_named(name);
    const Variant& variant =
        *value_or_raise(contract::choose_variant(operation, view_of(model), Encoding::json));
    CheckedRequest request(operation, variant);
    const ParsedBody parsed(body, max_bytes);
    if (parsed.is_long()) {
        request.run_long(parsed.value(), server);
    } else {
        request.run(parsed.value(), server, py::dict());
    }
    return request.finish();
}

py::tuple check_json(const std::string& name, const std::optional<std::string>& model,
                     const py::buffer& body, bool server, std::size_t max_bytes) {
    const Operation& operation = operation_named(name);
    const Variant& variant =
        *value_or_raise(contract::choose_variant(operation, view_of(model), Encoding::json));
    const ParsedBody parsed(body, max_bytes);
    const contract::Report report =
        parsed.is_long() ? long_check(operation, variant, parsed.value(), server)
                         : contract::check(operation, variant, parsed.value(), side_of(server));
    if (!report.ok()) raise_problems(operation, report);
    py::list warnings;
    for (const std::string& warning : report.warnings) warnings.append(to_text(warning));
    return py::make_tuple(to_text(variant.id), to_text(variant.model), warnings);
}

/// The name under which a dict has a field, which may be an alias.
py::str given_name(const py::dict& values, const contract::Field& field) {
    py::str name = to_str(field.name);
    if (values.contains(name)) return name;
    for (const std::string_view alias : field.aliases) {
        if (values.contains(to_str(alias))) return to_str(alias);
    }
    return name;
}

py::dict check(const std::string& name, const std::string& variant_id, const py::dict& values) {
    const Operation& operation = operation_named(name);
    for (const Variant& variant : operation.variants) {
        if (variant.id != variant_id) continue;
        py::dict found = values;
        const auto changeable = [&found, &values]() -> py::dict& {
            if (found.is(values))
                found = py::reinterpret_steal<py::dict>(PyDict_Copy(values.ptr()));
            if (!found) throw py::error_already_set();
            return found;
        };
        const contract::Report report = contract::check(
            operation, variant, PythonBody(values.ptr(), variant.body), Side::client,
            [&](const contract::Accepted& accepted) {
                const bool is_whole = accepted.value.type() == contract::type_number;
                if (!is_whole || !accepted.number) return;
                changeable()[given_name(values, accepted.field)] = to_python(*accepted.number);
            },
            [](std::string_view, const contract::ValueSource&) {});
        if (!report.ok()) raise_problems(operation, report);
        for (const std::string& absent : report.absent) {
            changeable().attr("pop")(to_str(absent), py::none());
        }
        return found;
    }
    raise(
        {.code = ErrorCode::invalid_argument,
         .message = name + " has no variant " + py::repr(py::str(variant_id)).cast<std::string>()});
}

std::string encoding_of(const std::optional<std::string>& content_type, bool json, bool multipart) {
    std::vector<Encoding> accepted;
    if (json) accepted.push_back(Encoding::json);
    if (multipart) accepted.push_back(Encoding::multipart);
    return value_or_raise(contract::encoding_of(view_of(content_type), accepted)) == Encoding::json
               ? "json"
               : "multipart";
}

/// The members that are not None. Runs no Python code except hashes of names, which strings cache.
py::dict present(const py::dict& values) {
    auto found = py::dict();
    Py_ssize_t at = 0;
    PyObject* name = nullptr;
    PyObject* value = nullptr;
    Held name_held;
    Held value_held;
    while (next_member(values.ptr(), at, name, value, name_held, value_held)) {
        if (value == Py_None) continue;
        if (PyDict_SetItem(found.ptr(), name, value) != 0) throw py::error_already_set();
    }
    return found;
}

/// For a client. Returns (operation's name, path, variant's id, its model, encoding).
py::tuple choose_variant(const std::string& name, const std::optional<std::string>& model,
                         const py::dict& values) {
    const Operation& operation = operation_named(name);
    const Variant& variant = *value_or_raise(
        contract::choose_variant(operation, view_of(model), [&values](std::string_view field) {
            PyObject* const value = PyDict_GetItemWithError(values.ptr(), to_str(field).ptr());
            if (value == nullptr && PyErr_Occurred() != nullptr) throw py::error_already_set();
            return value != nullptr && value != Py_None;
        }));
    return py::make_tuple(to_text(operation.name), to_text(operation.path), to_text(variant.id),
                          to_text(variant.model),
                          variant.encoding == Encoding::json ? "json" : "multipart");
}

py::tuple read_form(const std::string& name, const std::optional<std::string>& model,
                    const std::vector<std::pair<std::string, py::object>>& fields, bool server) {
    const Operation& operation = operation_named(name);
    const Variant& variant =
        *value_or_raise(contract::choose_variant(operation, view_of(model), Encoding::multipart));
    std::vector<contract::FormPart> parts;
    py::dict files;
    std::vector<py::bytes> texts;  // Keeps the memory of the parts alive.
    texts.reserve(fields.size());
    for (const auto& [field, value] : fields) {
        if (py::isinstance<py::str>(value)) {
            texts.push_back(py::reinterpret_steal<py::bytes>(PyUnicode_AsUTF8String(value.ptr())));
            if (!texts.back()) throw py::error_already_set();
            parts.push_back({.name = field, .text = std::string_view(texts.back())});
        } else {
            files[py::str(field)] = value;
            parts.push_back({.name = field, .is_file = true});
        }
    }
    CheckedRequest request(operation, variant);
    request.run(contract::FormBody(parts), server, files);
    return request.finish();
}

}  // namespace

void register_contract(py::module_& module) {
    module.def("present", &present, py::arg("values"),
               "Return the values that are not None, as a new dict.");
    module.def("describe", &describe, py::arg("operation") = py::none(),
               "Return the contract as JSON text: all operations, or only the named one.");
    module.def("read_json", &read_json, py::arg("operation"), py::arg("model"), py::arg("body"),
               py::arg("server"), py::arg("max_bytes"),
               "Parse and check a JSON body. Return (variant, model, values, warnings).");
    module.def("check_json", &check_json, py::arg("operation"), py::arg("model"), py::arg("body"),
               py::arg("server"), py::arg("max_bytes"),
               "Check a JSON body without creating values. Return (variant, model, warnings).");
    module.def("check", &check, py::arg("operation"), py::arg("variant"), py::arg("values"),
               "Check a client's request; `values` maps wire names of fields to values. Return the "
               "values to send: without absent fields, with whole numbers as integers.");
    module.def("encoding_of", &encoding_of, py::arg("content_type"), py::arg("json"),
               py::arg("multipart"),
               "Return the encoding of a received Content-Type: json or multipart, if accepted.");
    module.def(
        "choose_variant", &choose_variant, py::arg("operation"), py::arg("model"),
        py::arg("values"),
        "Select the variant for a client's request. Return (name, path, id, model, encoding).");
    module.def(
        "read_form", &read_form, py::arg("operation"), py::arg("model"), py::arg("fields"),
        py::arg("server"),
        "Parse and check a form: pairs of a name and a text or a file object. Return (variant, "
        "model, values, warnings).");
}

}  // namespace polymux::bindings
