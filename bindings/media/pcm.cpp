#include "pcm.hpp"

#include <bit>
#include <memory>
#include <span>
#include <utility>

#include <pybind11/stl.h>

#include "chunked_bytes.hpp"
#include "job.hpp"
#include "options.hpp"
#include "polymux/media/pcm.hpp"
#include "python_source.hpp"

namespace polymux::bindings {
namespace {

using namespace py::literals;  // NOLINT(google-build-using-namespace)

static_assert(std::endian::native == std::endian::little,
              "the documented byte order of samples is little-endian");

struct Decoded {
    media::PcmReport report;
    Reference samples;
};

Result<Decoded> decode(Input& input, const media::PcmOptions& options, const CancelToken& token) {
    auto source = input.open();
    if (!source) {
        return source.error();
    }
    ChunkedBytes collected;
    bool out_of_memory = false;
    const auto collect = [&](std::span<const float> samples) {
        try {
            collected.append(std::as_bytes(samples));
        } catch (const std::bad_alloc&) {
            out_of_memory = true;
        }
        return !out_of_memory;
    };
    auto report = media::decode_pcm(**source, collect, options, token);
    if (!report && !out_of_memory) {
        return report.error();
    }
    Decoded decoded;
    if (!out_of_memory) {
        decoded.report = *report;
        with_gil([&] { decoded.samples = collected.take_python_bytes(); });
    }
    if (!decoded.samples) {
        return Error{.code = ErrorCode::out_of_memory,
                     .message =
                         "not enough memory for the decoded audio. Decode it in parts, with start "
                         "and end",
                     .input_name = (*source)->name()};
    }
    return decoded;
}

py::dict decode_pcm(const py::object& source, int sample_rate_hz, int channels,
                    std::optional<int> audio_stream, std::optional<double> start_s,
                    std::optional<double> end_s, bool strict, const py::object& limits,
                    const py::object& check) {
    const media::PcmOptions options{.sample_rate_hz = sample_rate_hz,
                                    .channels = channels,
                                    .audio_stream = audio_stream,
                                    .start_s = start_s,
                                    .end_s = end_s,
                                    .strict = strict,
                                    .limits = copy_limits(limits)};
    const Entry entry;
    const auto job = std::make_shared<ResultJob<Decoded>>();
    job->work = [input = Input::parse(source, *job), options, token = job->token()] {
        return decode(*input, options, token);
    };
    job->start(Job::Place::own_thread);
    job->await_checked(check);
    const Decoded& decoded = job->get();
    return py::dict("samples"_a = decoded.samples.get(), "sample_count"_a = decoded.report.samples,
                    "sample_rate_hz"_a = decoded.report.sample_rate_hz,
                    "channels"_a = decoded.report.channels,
                    "damaged_packets"_a = decoded.report.damaged_packets);
}

}  // namespace

void register_pcm(py::module_& module) {
    module.def("decode_pcm", &decode_pcm, py::arg("source"), py::arg("sample_rate_hz"),
               py::arg("channels"), py::arg("audio_stream"), py::arg("start_s"), py::arg("end_s"),
               py::arg("strict"), py::arg("limits"), py::arg("check") = py::none());
}

}  // namespace polymux::bindings
