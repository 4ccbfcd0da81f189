#include "problems.hpp"

#include "errors.hpp"

namespace polymux::bindings {

namespace {

[[noreturn]] void raise_invalid(std::string_view message, const py::list& problems) {
    const py::object error = py::module_::import("polymux._native.errors")
                                 .attr("invalid_request")(to_text(message), problems);
    raise_object(error, {});
}

}  // namespace

void raise_problems(const contract::Operation& operation, const contract::Report& report) {
    py::list problems;
    for (const contract::Problem& problem : report.problems) {
        problems.append(py::make_tuple(to_text(problem.field), to_text(problem.message)));
    }
    raise_invalid(report.message(operation), problems);
}

void raise_invalid_request(std::string_view field, std::string_view message) {
    py::list problems;
    problems.append(py::make_tuple(to_text(field), to_text(message)));
    raise_invalid(message, problems);
}

}  // namespace polymux::bindings
