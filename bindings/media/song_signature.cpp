#include "song_signature.hpp"

#include <memory>

#include "job.hpp"
#include "options.hpp"
#include "polymux/song/shazam_signature.hpp"
#include "python_source.hpp"

namespace polymux::bindings {
namespace {

using namespace py::literals;  // NOLINT(google-build-using-namespace)

py::dict shazam_signature(const py::object& source, const py::object& limits,
                          const py::object& check) {
    const Entry entry;
    const auto job = std::make_shared<ResultJob<song::ShazamSignature>>();
    job->work = [input = Input::parse(source, *job), limits = copy_limits(limits),
                 token = job->token()]() -> Result<song::ShazamSignature> {
        auto opened = input->open();
        if (!opened) return opened.error();
        return song::shazam_signature_of(**opened, limits, token);
    };
    job->start(Job::Place::own_thread);
    job->await_checked(check);
    const song::ShazamSignature& made = job->get();
    return py::dict("uri"_a = song::shazam_uri(made.bytes), "sample_count"_a = made.samples,
                    "peak_count"_a = made.peaks);
}

}  // namespace

void register_song_signature(py::module_& module) {
    module.def("shazam_signature", &shazam_signature, py::arg("source"), py::arg("limits"),
               py::arg("check") = py::none());
}

}  // namespace polymux::bindings
