#include "probe.hpp"

#include <memory>

#include <pybind11/stl.h>

#include "job.hpp"
#include "options.hpp"
#include "polymux/media/probe.hpp"
#include "python_source.hpp"

namespace polymux::bindings {
namespace {

using media::MediaInfo;
using namespace py::literals;  // NOLINT(google-build-using-namespace)

/// Pairs instead of a dict, because a key may occur more than once.
py::list to_list(const media::Tags& tags) {
    py::list pairs;
    for (const auto& [key, value] : tags) {
        pairs.append(py::make_tuple(to_text(key), to_text(value)));
    }
    return pairs;
}

py::dict to_dict(const media::StreamInfo& stream) {
    return py::dict("index"_a = stream.index, "type"_a = to_text(stream.type),
                    "codec"_a = to_text(stream.codec), "duration_s"_a = stream.duration_s,
                    "bitrate_bps"_a = stream.bitrate_bps,
                    "sample_rate_hz"_a = stream.sample_rate_hz, "channels"_a = stream.channels,
                    "channel_layout"_a = to_text(stream.channel_layout),
                    "sample_format"_a = to_text(stream.sample_format),
                    "bits_per_sample"_a = stream.bits_per_sample, "width"_a = stream.width,
                    "height"_a = stream.height, "language"_a = to_text(stream.language),
                    "is_default"_a = stream.is_default, "is_cover"_a = stream.is_cover,
                    "encrypted"_a = stream.encrypted, "tags"_a = to_list(stream.tags));
}

py::dict to_dict(const media::Chapter& chapter) {
    return py::dict("start_ms"_a = chapter.start_ms, "end_ms"_a = chapter.end_ms,
                    "tags"_a = to_list(chapter.tags));
}

py::object to_dict_or_none(const std::optional<media::Cover>& cover) {
    if (!cover) {
        return py::none();
    }
    return py::dict(
        "mime_type"_a = to_text(cover->mime_type), "description"_a = to_text(cover->description),
        "picture_type"_a = cover->picture_type,
        "data"_a =
            py::bytes(reinterpret_cast<const char*>(cover->data.data()), cover->data.size()));
}

template <typename Items>
py::list to_dicts(const Items& items) {
    py::list dicts;
    for (const auto& item : items) {
        dicts.append(to_dict(item));
    }
    return dicts;
}

py::dict to_dict(const MediaInfo& info) {
    return py::dict("container"_a = to_text(info.container),
                    "container_long_name"_a = to_text(info.container_long_name),
                    "duration_s"_a = info.duration_s, "start_s"_a = info.start_s,
                    "bitrate_bps"_a = info.bitrate_bps, "size_bytes"_a = info.size_bytes,
                    "streams"_a = to_dicts(info.streams),
                    "best_audio_stream"_a = info.best_audio_stream, "tags"_a = to_list(info.tags),
                    "chapters"_a = to_dicts(info.chapters),
                    "cover"_a = to_dict_or_none(info.cover));
}

py::dict probe(const py::object& source, const py::object& limits, const py::object& check) {
    const Entry entry;
    const auto job = std::make_shared<ResultJob<MediaInfo>>();
    job->work = [input = Input::parse(source, *job), copied = copy_limits(limits),
                 token = job->token()]() -> Result<MediaInfo> {
        auto opened = input->open();
        if (!opened) {
            return opened.error();
        }
        return media::probe(**opened, copied, token);
    };
    job->start(Job::Place::own_thread);
    job->await_checked(check);
    return to_dict(job->get());
}

}  // namespace

void register_probe(py::module_& module) {
    module.def("probe", &probe, py::arg("source"), py::arg("limits"),
               py::arg("check") = py::none());
}

}  // namespace polymux::bindings
