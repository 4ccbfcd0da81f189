#include "conversion.hpp"

#include <memory>
#include <utility>

#include <pybind11/stl.h>

#include "options.hpp"
#include "polymux/media/convert.hpp"
#include "progress.hpp"
#include "python_sink.hpp"
#include "python_source.hpp"

namespace polymux::bindings {
namespace {

using media::ConvertReport;
using media::Progress;
using namespace py::literals;  // NOLINT(google-build-using-namespace)

py::dict to_dict(const ConvertReport& report) {
    py::list warnings;
    for (const auto& warning : report.warnings) {
        warnings.append(warning_dict(warning));
    }
    return py::dict("duration_s"_a = report.duration_s, "samples"_a = report.samples,
                    "frames"_a = report.frames, "bytes"_a = report.bytes,
                    "audio_bytes"_a = report.audio_bytes,
                    "sample_rate_hz"_a = report.sample_rate_hz, "channels"_a = report.channels,
                    "mode"_a = to_text(report.mode), "container"_a = to_text(report.container),
                    "codec"_a = to_text(report.codec), "audio_stream"_a = report.audio_stream,
                    "encoder"_a = to_text(report.encoder), "elapsed_s"_a = report.elapsed_s,
                    "damaged_packets"_a = report.damaged_packets, "seams"_a = report.seams,
                    "absorbed_segments"_a = report.absorbed_segments,
                    "bumped_frames"_a = report.bumped_frames, "repairs"_a = report.repairs,
                    "inexact_frames"_a = report.inexact_frames, "identical"_a = report.identical,
                    "reference"_a = to_text(report.reference), "warnings"_a = warnings);
}

struct Converted {
    ConvertReport report;
    Reference data;  ///< The file as bytes, if the destination is memory.
};

using ConversionJob = ProgressJob<Converted>;

Result<Converted> convert(ConversionJob& job, Input& input, Output& output,
                          const media::ConvertOptions& options) {
    auto source = input.open();
    if (!source) {
        return source.error();
    }
    auto sink = output.open((*source)->identity());
    if (!sink) {
        return sink.error();
    }
    const auto on_progress = [&job](const Progress& progress) {
        job.set_progress(progress);
        return true;
    };
    auto report = media::convert_to_mp3(**source, **sink, options, on_progress, job.token());
    if (!report) {
        return report.error();
    }
    Converted converted{.report = std::move(*report), .data = {}};
    if (ChunkedBytes* const bytes = output.memory(); bytes != nullptr) {
        with_gil([&] { converted.data = bytes->take_python_bytes(); });
        if (!converted.data) {
            return Error{
                .code = ErrorCode::out_of_memory,
                .message =
                    "not enough memory to return the MP3. Pass a destination to write it to "
                    "a file"};
        }
    }
    return converted;
}

/// The Python handle. Any thread may use it.
class Conversion {
public:
    explicit Conversion(std::shared_ptr<ConversionJob> job) : job_(std::move(job)) {}
    Conversion(const Conversion&) = delete;
    Conversion& operator=(const Conversion&) = delete;

    ~Conversion() {
        if (job_->foreign()) {
            // Its condition variable may have waiters that exist only in the parent.
            [[maybe_unused]] const auto* const leaked =
                std::make_unique<std::shared_ptr<Job>>(job_).release();
        } else {
            job_->cancel();
        }
    }

    [[nodiscard]] bool done() const { return own_job().finished(); }
    void cancel() const { own_job().cancel(); }
    [[nodiscard]] py::dict progress() const { return progress_dict(own_job().progress().first); }

    py::dict wait(const py::object& on_progress) const {
        const Entry entry;
        ConversionJob& job = own_job();
        if (on_progress.is_none()) {
            job.await();
        } else {
            job.await(ProgressRelay(job, on_progress));
        }
        const Converted& converted = job.get();
        if (!on_progress.is_none()) {
            invoke(on_progress, py::make_tuple(progress_dict(final_progress(converted.report))));
        }
        py::dict result = to_dict(converted.report);
        if (converted.data) {
            result["data"] = converted.data.get();
        }
        return result;
    }

    /// For the garbage collector. Other code also owns a running job's objects, so they are not
    /// visited.
    int traverse(visitproc visit, void* argument) const {
        return job_->finished() ? job_->calls().traverse(visit, argument) : 0;
    }
    void clear() const noexcept {
        if (job_->finished()) {
            job_->calls().clear();
        }
    }

private:
    static Progress final_progress(const ConvertReport& report) {
        return {.position_s = report.duration_s,
                .duration_s = report.duration_s,
                .bytes_written = report.bytes,
                .elapsed_s = report.elapsed_s};
    }

    ConversionJob& own_job() const {
        if (job_->foreign()) {
            raise({.code = ErrorCode::invalid_argument,
                   .message = "this conversion runs in the parent process. Start a new one in this "
                              "process"});
        }
        return *job_;
    }

    const std::shared_ptr<ConversionJob> job_;
};

std::unique_ptr<Conversion> start_conversion(const py::object& source,
                                             const py::object& destination,
                                             const py::object& options, bool overwrite,
                                             const py::object& on_done) {
    const Entry entry;
    auto job = std::make_shared<ConversionJob>();
    // The job owns its work, so the work may hold a plain reference to it.
    job->work = [&own = *job, input = Input::parse(source, *job),
                 output = Output::parse(destination, overwrite, *job),
                 copied = copy_options(options)] { return convert(own, *input, *output, copied); };
    job->start(Job::Place::pool, on_done.is_none() ? py::object() : on_done);
    return std::make_unique<Conversion>(std::move(job));
}

}  // namespace

void register_conversion(py::module_& module) {
    py::class_<Conversion>(
        module, "Conversion", py::is_final(), plain_metaclass(),
        py::custom_type_setup(&collect_cycles<Conversion>),
        "A conversion that runs on the process-wide pool. Deleting it cancels it.")
        .def("__reduce__", &refuse_pickling)
        .def_property_readonly("done", &Conversion::done)
        .def_property_readonly("progress", &Conversion::progress)
        .def("cancel", &Conversion::cancel)
        .def("wait", &Conversion::wait, py::arg("on_progress") = py::none());
    module.def("start_conversion", &start_conversion, py::arg("source"), py::arg("destination"),
               py::arg("options"), py::arg("overwrite"), py::arg("on_done"));
}

}  // namespace polymux::bindings
