// polymux._native._media: the media core for Python.
#include "conversion.hpp"
#include "errors.hpp"
#include "interpreter.hpp"
#include "job.hpp"
#include "options.hpp"
#include "pcm.hpp"
#include "polymux/media/build_info.hpp"
#include "polymux/version.hpp"
#include "probe.hpp"
#include "remux.hpp"
#include "song.hpp"
#include "song_index.hpp"
#include "song_signature.hpp"
#include "spectrogram.hpp"
#include "title_match.hpp"
#include "video.hpp"

namespace polymux::bindings {
namespace {

using namespace py::literals;  // NOLINT(google-build-using-namespace)

py::dict build_info() {
    const media::BuildInfo info = media::build_info();
    py::dict ffmpeg("ffmpeg"_a = info.ffmpeg);
    for (const auto& [library, version] : info.ffmpeg_libraries) {
        ffmpeg[py::str(library)] = version;
    }
    return py::dict("version"_a = version(), "ffmpeg"_a = ffmpeg,
                    "ffmpeg_license"_a = info.ffmpeg_license, "lame"_a = info.lame,
                    "private_deps"_a = info.private_deps, "compiler"_a = info.compiler,
                    "sanitizer"_a = info.sanitizer);
}

}  // namespace

// `mod_gil_not_used`: see the core module.
PYBIND11_MODULE(_media_of_main, module, py::mod_gil_not_used()) {
    module.doc() = "The native media module. Private: use the functions of `polymux`.";
    module.attr("__version__") = version();
    module.def("build_info", &build_info,
               "Return the versions of this build and of its loaded libraries.");
    register_options(module);
    register_conversion(module);
    register_probe(module);
    register_pcm(module);
    register_remux(module);
    register_song(module);
    register_song_index(module);
    register_song_signature(module);
    register_spectrogram(module);
    register_title_match(module);
    register_video(module);
    watch_interpreter_exit();
    translate_exceptions();
    register_exit_handler();
    forbid_uninitialized(module);
}

}  // namespace polymux::bindings

/// The symbol that Python looks up. Only the main interpreter can load the module: in others,
/// pybind11 would wait for a lock that the waiting thread holds.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the name is CPython's rule.
extern "C" PYBIND11_EXPORT PyObject* PyInit__media() {
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError,
                        "polymux._native._media is not supported in a subinterpreter. Import "
                        "polymux in the main interpreter");
        return nullptr;
    }
    return polymux::bindings::PyInit__media_of_main();
}
