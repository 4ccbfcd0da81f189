#include "song.hpp"

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <pybind11/stl.h>

#include "options.hpp"
#include "polymux/song/recording.hpp"
#include "progress.hpp"
#include "python_source.hpp"

namespace polymux::bindings {
namespace {

using namespace py::literals;  // NOLINT(google-build-using-namespace)

static_assert(std::endian::native == std::endian::little,
              "the documented byte order of peaks is little-endian");

py::bytes bytes_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

using FingerprintJob = ProgressJob<song::RecordingFingerprint>;

Result<song::RecordingFingerprint> fingerprint(FingerprintJob& job, Input& input,
                                               const song::RecordingOptions& options) {
    auto source = input.open();
    if (!source) {
        return source.error();
    }
    const auto on_progress = [&job](double position_s) {
        job.set_progress({.position_s = position_s});
    };
    return song::fingerprint_recording(**source, song_parameters, options, on_progress,
                                       job.token());
}

py::dict fingerprint_song(const py::object& source, std::optional<int> audio_stream,
                          const py::object& limits, const py::object& on_progress) {
    const song::RecordingOptions options{.audio_stream = audio_stream,
                                         .limits = copy_limits(limits)};
    const Entry entry;
    const auto job = std::make_shared<FingerprintJob>();
    job->work = [&own = *job, input = Input::parse(source, *job), options] {
        return fingerprint(own, *input, options);
    };
    job->start(Job::Place::own_thread);
    if (on_progress.is_none()) {
        job->await();
    } else {
        job->await(ProgressRelay(*job, on_progress));
    }
    const song::RecordingFingerprint& made = job->get();
    py::list parts;
    for (const song::FingerprintPart& part : made.parts) {
        const auto& peaks = part.fingerprint.peaks;
        parts.append(py::make_tuple(part.first_frame, part.fingerprint.frames,
                                    bytes_of(std::as_bytes(std::span(peaks[0]))),
                                    bytes_of(std::as_bytes(std::span(peaks[1])))));
    }
    return py::dict("parts"_a = parts, "duration_s"_a = made.duration_s,
                    "parameters"_a = song_parameters.hash());
}

py::dict song_query(const py::object& source, const py::object& limits, const py::object& check) {
    const song::RecordingOptions options{.audio_stream = {}, .limits = copy_limits(limits)};
    const Entry entry;
    const auto job = std::make_shared<ResultJob<song::RecordedQuery>>();
    job->work = [&own = *job, input = Input::parse(source, *job),
                 options]() -> Result<song::RecordedQuery> {
        auto opened = input->open();
        if (!opened) {
            return opened.error();
        }
        return song::query_recording(**opened, song_parameters, options, own.token());
    };
    job->start(Job::Place::own_thread);
    job->await_checked(check);
    const song::RecordedQuery& made = job->get();
    return py::dict("query"_a = bytes_of(song::to_bytes(made.query, song_parameters)),
                    "duration_s"_a = made.duration_s);
}

}  // namespace

void register_song(py::module_& module) {
    module.def("fingerprint_song", &fingerprint_song, py::arg("source"), py::arg("audio_stream"),
               py::arg("limits"), py::arg("on_progress"));
    module.def("song_query", &song_query, py::arg("source"), py::arg("limits"),
               py::arg("check") = py::none());
    module.def("parameters_hash", [] { return song_parameters.hash(); });
}

}  // namespace polymux::bindings
