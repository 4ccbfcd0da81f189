#include "json_buffer.hpp"

#include <array>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include <pybind11/critical_section.h>

#include "json_writer.hpp"

namespace polymux::bindings {

namespace {

constexpr std::size_t max_kept_bytes =
    4U << 20U;  // A single large request does not keep its memory reserved.

/// Runs calls from Python; no C++ exception may escape.
template <typename Body>
PyObject* object_or_null(Body&& body) noexcept {
    try {
        return body();
    } catch (py::error_already_set& raised) {
        raised.restore();
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    }
    return nullptr;
}

void forget_much(json::Buffer& buffer) {
    if (buffer.capacity_bytes() > max_kept_bytes) buffer = {};
    buffer.clear();
}

PyObject* write_json_as_bytes(PyObject* /*module*/, PyObject* object) {
    return object_or_null([object] {
        // Taken during use, because the caller's code may call this again.
        static thread_local std::unique_ptr<json::Buffer> spare;
        std::unique_ptr<json::Buffer> buffer = std::move(spare);
        if (!buffer) buffer = std::make_unique<json::Buffer>();
        buffer->clear();
        write_json(*buffer, object);
        PyObject* const bytes = PyBytes_FromStringAndSize(
            buffer->view().data(), static_cast<Py_ssize_t>(buffer->size_bytes()));
        forget_much(*buffer);
        spare = std::move(buffer);
        return bytes;
    });
}

/// In builds without a GIL, hold the object's lock to access it. The bytes belong to the writing
/// thread.
struct BufferObject {
    PyObject_HEAD json::Buffer buffer;
    Py_ssize_t size_bytes;  // Size of the last text.
    Py_ssize_t views;       // Buffer views held by Python; the bytes must not move meanwhile.
    bool writing;
};

BufferObject& self_of(PyObject* self) {
    return *reinterpret_cast<BufferObject*>(self);
}

PyObject* buffer_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
    if (PyTuple_GET_SIZE(arguments) != 0 || (keywords != nullptr && PyDict_Size(keywords) != 0)) {
        PyErr_SetString(PyExc_TypeError, "JsonBuffer() takes no arguments");
        return nullptr;
    }
    PyObject* const self = type->tp_alloc(type, 0);
    if (self != nullptr) new (&self_of(self).buffer) json::Buffer();
    return self;
}

void buffer_dealloc(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    self_of(self).buffer.~Buffer();
    type->tp_free(self);
    Py_DECREF(reinterpret_cast<PyObject*>(type));
}

/// Raises if the bytes must not change now, otherwise claims them.
bool begin_writing(PyObject* self) {
    BufferObject& object = self_of(self);
    const py::scoped_critical_section lock(self);
    if (object.views == 0 && !object.writing) {
        object.writing = true;
        return true;
    }
    PyErr_SetString(PyExc_BufferError,
                    "the JsonBuffer is in use. Release its memoryviews, and write to it from one "
                    "thread at a time");
    return false;
}

void end_writing(PyObject* self) {
    BufferObject& object = self_of(self);
    const py::scoped_critical_section lock(self);
    object.size_bytes = static_cast<Py_ssize_t>(object.buffer.size_bytes());
    object.writing = false;
}

PyObject* buffer_write(PyObject* self, PyObject* value) {
    if (!begin_writing(self)) return nullptr;
    json::Buffer& buffer = self_of(self).buffer;
    PyObject* const result = object_or_null([&buffer, value] {
        forget_much(buffer);
        write_json(buffer, value);
        return Py_NewRef(Py_None);
    });
    if (result == nullptr) buffer.clear();
    end_writing(self);
    return result;
}

PyObject* buffer_clear(PyObject* self, PyObject* /*none*/) {
    if (!begin_writing(self)) return nullptr;
    forget_much(self_of(self).buffer);
    end_writing(self);
    return Py_NewRef(Py_None);
}

Py_ssize_t buffer_length(PyObject* self) {
    const py::scoped_critical_section lock(self);
    return self_of(self).size_bytes;
}

int buffer_get(PyObject* self, Py_buffer* view, int flags) {
    BufferObject& object = self_of(self);
    const py::scoped_critical_section lock(self);
    if (object.writing) {
        PyErr_SetString(PyExc_BufferError, "the JsonBuffer is being written to");
        view->obj = nullptr;
        return -1;
    }
    static char nothing = '\0';
    const std::string_view bytes = object.buffer.view();
    void* const start = bytes.empty() ? &nothing : const_cast<char*>(bytes.data());
    const int status =
        PyBuffer_FillInfo(view, self, start, static_cast<Py_ssize_t>(bytes.size()), 1, flags);
    if (status == 0) ++object.views;
    return status;
}

void buffer_release(PyObject* self, Py_buffer* /*view*/) {
    const py::scoped_critical_section lock(self);
    --self_of(self).views;
}

constexpr const char* write_json_text =
    "write_json($module, value, /)\n--\n\nReturn the value as JSON text in UTF-8.";
constexpr const char* write_text =
    "write($self, value, /)\n--\n\nReplace the content with the value's JSON text.";
constexpr const char* clear_text =
    "clear($self, /)\n--\n\nRemove the content, but keep at most 4 MiB of its memory for reuse.";

std::array<PyMethodDef, 2> functions = {{
    {"write_json", write_json_as_bytes, METH_O, write_json_text},
    {nullptr, nullptr, 0, nullptr},
}};

std::array<PyMethodDef, 3> methods = {{
    {"write", buffer_write, METH_O, write_text},
    {"clear", buffer_clear, METH_NOARGS, clear_text},
    {nullptr, nullptr, 0, nullptr},
}};

template <typename F>
void* slot(F* function) {
    return reinterpret_cast<void*>(function);
}

}  // namespace

void register_json_buffer(py::module_& module) {
    static std::array<PyType_Slot, 8> slots = {{
        {Py_tp_doc, const_cast<char*>("JSON text in reusable memory; readable as bytes.")},
        {Py_tp_new, slot(buffer_new)},
        {Py_tp_dealloc, slot(buffer_dealloc)},
        {Py_tp_methods, methods.data()},
        {Py_mp_length, slot(buffer_length)},
        {Py_bf_getbuffer, slot(buffer_get)},
        {Py_bf_releasebuffer, slot(buffer_release)},
        {0, nullptr},
    }};
    static PyType_Spec spec = {"polymux._native._core.JsonBuffer", sizeof(BufferObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots.data()};
    const auto type = py::reinterpret_steal<py::object>(PyType_FromSpec(&spec));
    if (!type) throw py::error_already_set();
    module.add_object("JsonBuffer", type);
    if (PyModule_AddFunctions(module.ptr(), functions.data()) != 0) throw py::error_already_set();
}

}  // namespace polymux::bindings
