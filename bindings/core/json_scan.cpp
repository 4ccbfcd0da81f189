#include "json_scan.hpp"

#include <optional>
#include <string>
#include <string_view>

#include <pybind11/critical_section.h>
#include <pybind11/stl.h>

#include "polymux/request/json_scan.hpp"
#include "python_bytes.hpp"

namespace polymux::bindings {

namespace {

using json::Scan;

void add(const py::object& self, const py::object& piece) {
    const HeldBuffer held(piece);
    const auto bytes = held.bytes();
    const py::scoped_critical_section lock(self);
    self.cast<Scan&>().add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

template <typename Value>
auto locked(Value (Scan::*member)() const noexcept) {
    return [member](const py::object& self) {
        const py::scoped_critical_section lock(self);
        return std::decay_t<Value>((self.cast<const Scan&>().*member)());
    };
}

}  // namespace

void register_json_scan(py::module_& module) {
    py::class_<Scan>(module, "JsonScan", py::is_final(), plain_metaclass(),
                     "Measures JSON text while it arrives, before anything parses it.")
        .def("__reduce__", &refuse_pickling)
        .def(py::init<std::string>(), py::arg("member"))
        .def("add", &add, py::arg("piece"))
        .def_property_readonly("depth", locked(&Scan::depth))
        .def_property_readonly("values", locked(&Scan::values))
        .def_property_readonly("found", locked(&Scan::found));
}

}  // namespace polymux::bindings
