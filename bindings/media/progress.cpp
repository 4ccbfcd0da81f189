#include "progress.hpp"

#include <pybind11/stl.h>

namespace polymux::bindings {

using namespace py::literals;  // NOLINT(google-build-using-namespace)

py::dict progress_dict(const media::Progress& progress) {
    return py::dict("position_s"_a = progress.position_s, "duration_s"_a = progress.duration_s,
                    "bytes_written"_a = progress.bytes_written, "elapsed_s"_a = progress.elapsed_s);
}

py::dict warning_dict(const media::Warning& warning) {
    return py::dict("code"_a = to_text(warning.code), "message"_a = to_text(warning.message),
                    "position_s"_a = warning.position_s, "count"_a = warning.count);
}

}  // namespace polymux::bindings
