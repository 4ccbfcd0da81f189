#include "multipart.hpp"

#include <string>
#include <vector>

#include <pybind11/stl.h>

#include "multipart_body.hpp"

namespace polymux::bindings {

namespace {

/// The async methods are in Python, because awaiting is laborious in C++.
py::object in_python(const char* function, const py::object& self,
                     const py::tuple& rest = py::tuple()) {
    return py::module_::import("polymux.client.multipart").attr(function)(self, *rest);
}

}  // namespace

void register_multipart(py::module_& module) {
    py::class_<MultipartObject>(module, "MultipartBody", py::is_final(), plain_metaclass(),
                                py::custom_type_setup(&collect_cycles<MultipartObject>),
                                "A multipart/form-data body that is built while it is read.")
        .def("__reduce__", &refuse_pickling)
        .def(py::init<const std::vector<std::pair<std::string, std::string>>&,
                      const std::vector<UploadedFile>&, py::object>(),
             py::arg("fields"), py::arg("files"), py::arg("on_progress") = py::none())
        .def_property_readonly("content_type", &MultipartObject::content_type)
        .def_property_readonly("length_bytes", &MultipartObject::length_bytes)
        .def_property_readonly("sent_bytes", &MultipartObject::sent_bytes)
        .def_property_readonly("finished", &MultipartObject::finished)
        .def_property_readonly("can_rewind", &MultipartObject::can_rewind)
        .def_property_readonly("may_block", &MultipartObject::may_block)
        .def_property("on_progress", &MultipartObject::on_progress,
                      &MultipartObject::set_on_progress)
        .def("read", &MultipartObject::read, py::arg("size") = MultipartObject::iteration_bytes)
        .def("rewind", &MultipartObject::rewind)
        .def("__iter__", [](py::object self) { return self; })
        .def("__next__", &MultipartObject::next)
        .def(
            "aread",
            [](const py::object& self, py::ssize_t size) {
                return in_python("aread", self, py::make_tuple(size));
            },
            py::arg("size") = MultipartObject::iteration_bytes)
        .def("__aiter__", [](const py::object& self) { return in_python("pieces", self); })
        .def("_read_or_none", &MultipartObject::read_or_none, py::arg("size"))
        .def("_awaited", &MultipartObject::awaited)
        .def("_feed", &MultipartObject::feed, py::arg("piece"))
        .def("_fail", &MultipartObject::fail, py::arg("exception"));
    module.def(
        "content_type_of",
        [](const std::string& name) { return to_text(request::content_type_of(name)); },
        py::arg("file_name"), "Return the content type for a file name's extension.");
}

}  // namespace polymux::bindings
