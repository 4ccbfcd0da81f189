#include "options.hpp"

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <pybind11/critical_section.h>
#include <pybind11/stl.h>

#include "errors.hpp"
#include "polymux/media/mp3/frame.hpp"
#include "polymux/pool.hpp"

namespace polymux::bindings {
namespace {

using media::ConvertOptions;
using media::Limits;
using media::MetadataMode;
using media::Preset;
using media::Verify;

constexpr std::array<std::pair<const char*, Preset>, 3> presets{
    {{"ffmpeg", Preset::ffmpeg}, {"best", Preset::best}, {"fast", Preset::fast}}};
constexpr std::array<std::pair<const char*, Verify>, 3> references{
    {{"none", Verify::none}, {"sequential", Verify::sequential}, {"ffmpeg", Verify::ffmpeg}}};
constexpr std::array<std::pair<const char*, MetadataMode>, 2> carries{
    {{"copy", MetadataMode::copy}, {"none", MetadataMode::none}}};

template <typename Names>
auto from_name(const char* field, const std::string& name, const Names& names) {
    std::string known;
    for (const auto& [text, value] : names) {
        if (name == text) {
            return value;
        }
        known += std::string(known.empty() ? "" : ", ") + "'" + text + "'";
    }
    raise({.code = ErrorCode::invalid_argument,
           .message =
               std::string(field) + ": invalid value (got '" + name + "', allowed " + known + ")"});
}

template <typename Value, typename Names>
std::string to_name(Value value, const Names& names) {
    for (const auto& [text, candidate] : names) {
        if (value == candidate) {
            return text;
        }
    }
    return {};
}

/// A plain field. Locks the object in builds without a GIL.
template <typename Class, typename Value, typename... Extra>
void field(py::class_<Class, Extra...>& python_class, const char* name, Value Class::* member) {
    python_class.def_property(
        name,
        [member](const py::object& self) -> Value {
            const py::scoped_critical_section lock(self);
            return self.cast<const Class&>().*member;
        },
        [member](const py::object& self, const Value& value) {
            const py::scoped_critical_section lock(self);
            self.cast<Class&>().*member = value;
        });
}

/// An enumeration that Python sees as one of a few strings.
template <typename Value, typename Class, typename Names>
void named_field(Class& python_class, const char* name, Value ConvertOptions::* member,
                 const Names& names) {
    python_class.def_property(
        name,
        [member, &names](const py::object& self) {
            const py::scoped_critical_section lock(self);
            return to_name(self.cast<const ConvertOptions&>().*member, names);
        },
        [member, name, &names](const py::object& self, const std::string& text) {
            const Value value = from_name(name, text, names);
            const py::scoped_critical_section lock(self);
            self.cast<ConvertOptions&>().*member = value;
        });
}

using Picture = std::optional<std::pair<std::string, py::bytes>>;

/// Content type and bytes of a cover image; none for the input's own.
Picture replaced_cover(const py::object& self) {
    const py::scoped_critical_section lock(self);
    const auto& cover = self.cast<const ConvertOptions&>().replace_cover;
    if (!cover) return std::nullopt;
    const auto* const data = reinterpret_cast<const char*>(cover->data.data());
    return std::pair(cover->mime_type, py::bytes(data, cover->data.size()));
}

void replace_cover(const py::object& self, const Picture& picture) {
    std::optional<media::Cover> cover;
    if (picture) {
        const std::string_view text(picture->second);
        const auto bytes = std::as_bytes(std::span(text));
        cover = {
            .mime_type = picture->first, .description = {}, .data = {bytes.begin(), bytes.end()}};
    }
    const py::scoped_critical_section lock(self);
    self.cast<ConvertOptions&>().replace_cover = std::move(cover);
}

void register_limits(py::module_& module) {
    py::class_<Limits> limits(
        module, "Limits", py::is_final(), plain_metaclass(),
        "Writable fields with the names and defaults of polymux::media::Limits.");
    limits.def("__reduce__", &refuse_pickling);
    limits.def(py::init<>());
    field(limits, "probe_bytes", &Limits::probe_bytes);
    field(limits, "streams", &Limits::streams);
    field(limits, "duration_s", &Limits::duration_s);
    field(limits, "sample_rate_hz", &Limits::sample_rate_hz);
    field(limits, "channels", &Limits::channels);
    field(limits, "tag_bytes", &Limits::tag_bytes);
    field(limits, "chapters", &Limits::chapters);
}

void register_convert_options(py::module_& module) {
    py::class_<ConvertOptions> options(
        module, "ConvertOptions", py::is_final(), plain_metaclass(),
        "Writable fields with the names and defaults of polymux::media::ConvertOptions.");
    options.def("__reduce__", &refuse_pickling);
    options.def(py::init<>());
    field(options, "bitrate_bps", &ConvertOptions::bitrate_bps);
    field(options, "vbr_quality", &ConvertOptions::vbr_quality);
    field(options, "abr", &ConvertOptions::abr);
    named_field(options, "preset", &ConvertOptions::preset, presets);
    field(options, "sample_rate_hz", &ConvertOptions::sample_rate_hz);
    field(options, "channels", &ConvertOptions::channels);
    field(options, "audio_stream", &ConvertOptions::audio_stream);
    field(options, "start_s", &ConvertOptions::start_s);
    field(options, "end_s", &ConvertOptions::end_s);
    named_field(options, "tags", &ConvertOptions::tags, carries);
    field(options, "replace_tags", &ConvertOptions::replace_tags);
    named_field(options, "cover", &ConvertOptions::cover, carries);
    options.def_property("replace_cover", &replaced_cover, &replace_cover);
    field(options, "id3v2_version", &ConvertOptions::id3v2_version);
    field(options, "identical_file", &ConvertOptions::identical_file);
    field(options, "threads", &ConvertOptions::threads);
    field(options, "exact", &ConvertOptions::exact);
    named_field(options, "verify", &ConvertOptions::verify, references);
    field(options, "strict", &ConvertOptions::strict);
    field(options, "limits", &ConvertOptions::limits);
}

}  // namespace

Limits copy_limits(const py::object& limits) {
    const py::scoped_critical_section lock(limits);
    return limits.cast<const Limits&>();
}

ConvertOptions copy_options(const py::object& options) {
    const py::scoped_critical_section lock(options);
    return options.cast<const ConvertOptions&>();
}

void register_options(py::module_& module) {
    register_limits(module);
    register_convert_options(module);
    module.def(
        "validate",
        [](const py::object& options) {
            if (const auto checked = media::validate(copy_options(options)); !checked) {
                raise(checked.error());
            }
        },
        py::arg("options"),
        "Raise an error that names every problem with the options, if there are any.");
    module.def(
        "parse_bitrate",
        [](const std::string& text) { return value_or_raise(media::parse_bitrate(text)); },
        py::arg("text"), "Parse \"128k\", \"128000\" or \"0.128M\" to bits per second.");
    module.def("nearest_bitrate", &media::mp3::nearest_bitrate, py::arg("bitrate_bps"),
               py::arg("sample_rate_hz"),
               "Return the MP3 bitrate that LAME uses if this bitrate is requested.");
    module.def("available_cores", &available_cores,
               "Return the number of cores that this process may use.");
}

}  // namespace polymux::bindings
