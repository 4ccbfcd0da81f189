#include "remux.hpp"

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

#include "options.hpp"
#include "polymux/media/remux.hpp"
#include "progress.hpp"
#include "python_sink.hpp"
#include "python_source.hpp"

namespace polymux::bindings {
namespace {

using media::RemuxContainer;
using media::RemuxReport;
using namespace py::literals;  // NOLINT(google-build-using-namespace)

using RemuxJob = ProgressJob<RemuxReport>;
using Inputs = std::vector<std::shared_ptr<Input>>;

constexpr std::array<std::pair<const char*, RemuxContainer>, 3> containers{
    {{"mp4", RemuxContainer::mp4},
     {"matroska", RemuxContainer::matroska},
     {"webm", RemuxContainer::webm}}};

RemuxContainer container_of(const std::optional<std::string>& name) {
    if (!name) {
        return RemuxContainer::automatic;
    }
    for (const auto& [text, container] : containers) {
        if (*name == text) {
            return container;
        }
    }
    raise({.code = ErrorCode::invalid_argument,
           .message = "container: invalid value (got '" + *name +
                      "', allowed 'mp4', 'matroska', 'webm' or None)"});
}

py::dict to_dict(const RemuxReport& report) {
    py::list streams;
    for (const auto& stream : report.streams) {
        streams.append(py::dict("input"_a = stream.input, "index"_a = stream.index,
                                "type"_a = to_text(stream.type), "codec"_a = to_text(stream.codec),
                                "packets"_a = stream.packets));
    }
    py::list warnings;
    for (const auto& warning : report.warnings) {
        warnings.append(warning_dict(warning));
    }
    return py::dict("container"_a = to_text(report.container),
                    "content_type"_a = to_text(report.content_type),
                    "extension"_a = to_text(report.extension), "duration_s"_a = report.duration_s,
                    "bytes"_a = report.bytes, "streams"_a = streams,
                    "elapsed_s"_a = report.elapsed_s, "warnings"_a = warnings);
}

Result<RemuxReport> run_remux(RemuxJob& job, const Inputs& inputs, Output& output,
                              const media::RemuxOptions& options) {
    std::vector<std::unique_ptr<media::ByteSource>> owners;
    std::vector<media::ByteSource*> sources;
    std::array<std::optional<media::FileIdentity>, 2> identities;
    for (const auto& input : inputs) {
        auto source = input->open();
        if (!source) {
            return source.error();
        }
        if (sources.size() < identities.size()) {
            identities.at(sources.size()) = (*source)->identity();
        }
        sources.push_back(source->get());
        owners.push_back(std::move(*source));
    }
    auto sink = output.open(identities[0], identities[1]);
    if (!sink) {
        return sink.error();
    }
    const auto on_progress = [&job](const media::Progress& progress) {
        job.set_progress(progress);
        return true;
    };
    return media::remux(sources, **sink, options, on_progress, job.token());
}

py::dict remux(const py::list& sources, const py::object& destination,
               const std::optional<std::string>& container, const py::object& limits,
               bool overwrite, const py::object& on_progress, const py::object& check) {
    const media::RemuxOptions options{.container = container_of(container),
                                      .limits = copy_limits(limits)};
    const Entry entry;
    const auto job = std::make_shared<RemuxJob>();
    Inputs inputs;
    for (const auto& source : sources) {
        inputs.push_back(Input::parse(py::reinterpret_borrow<py::object>(source), *job));
    }
    // The job owns its work, so the work may hold a plain reference to it.
    job->work = [&own = *job, inputs = std::move(inputs),
                 output = Output::parse(destination, overwrite, *job),
                 options] { return run_remux(own, inputs, *output, options); };
    // It mostly waits for the disk, so it uses no core of conversions.
    job->start(Job::Place::own_thread);
    ProgressRelay relay(*job, on_progress);
    job->await([&] {
        if (!check.is_none()) {
            invoke(check);
        }
        if (!on_progress.is_none()) {
            relay();
        }
    });
    const RemuxReport& report = job->get();
    if (!on_progress.is_none()) {
        invoke(on_progress, py::make_tuple(progress_dict(job->progress().first)));
    }
    return to_dict(report);
}

}  // namespace

void register_remux(py::module_& module) {
    module.def("remux", &remux, py::arg("sources"), py::arg("destination"), py::arg("container"),
               py::arg("limits"), py::arg("overwrite"), py::arg("on_progress"), py::arg("check"));
}

}  // namespace polymux::bindings
