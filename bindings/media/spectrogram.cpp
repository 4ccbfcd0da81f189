#include "spectrogram.hpp"

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

#include "job.hpp"
#include "polymux/media/flac.hpp"
#include "polymux/spectrogram/picture.hpp"
#include "polymux/spectrogram/sound.hpp"
#include "python_bytes.hpp"

namespace polymux::bindings {
namespace {

using namespace py::literals;  // NOLINT(google-build-using-namespace)

static_assert(std::endian::native == std::endian::little,
              "the documented byte order of samples is little-endian");

template <typename T>
py::bytes bytes_of(const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A copy, because the bytes may be unaligned for floats and may change.
Result<std::vector<float>> samples_of(const HeldBuffer& buffer) {
    const std::span<const std::byte> bytes = buffer.bytes();
    if (bytes.size() % sizeof(float) != 0) {
        return Error{.code = ErrorCode::invalid_argument,
                     .message =
                         "invalid samples: the size must be a multiple of 4 bytes, because "
                         "samples are 32-bit floats (got " +
                         std::to_string(bytes.size()) + " bytes)"};
    }
    std::vector<float> samples(bytes.size() / sizeof(float));
    if (!samples.empty()) std::memcpy(samples.data(), bytes.data(), bytes.size());
    return samples;
}

/// A job that reports the completed fraction.
template <typename T>
class PartlyDone : public ResultJob<T> {
public:
    std::atomic<double> done{0};
};

/// Waits, and calls `on_progress` ten times a second, even without progress: it may raise to end
/// the work.
template <typename T>
const T& await_result(PartlyDone<T>& job, const py::object& on_progress) {
    if (on_progress.is_none()) {
        job.await();
        return job.get();
    }
    constexpr std::chrono::milliseconds interval{100};
    auto last = std::chrono::steady_clock::now();
    job.await([&] {
        const auto now = std::chrono::steady_clock::now();
        if (now - last < interval) return;
        last = now;
        invoke(on_progress, py::make_tuple(job.done.load()));
    });
    const T& made = job.get();
    invoke(on_progress, py::make_tuple(1.0));
    return made;
}

py::dict draw_sound(const py::object& samples, int channels, const py::object& on_progress) {
    using Work = PartlyDone<spectrogram::Picture>;
    const Entry entry;
    const auto job = std::make_shared<Work>();
    job->work = [&own = *job, held = std::make_shared<HeldBuffer>(samples),
                 channels]() -> Result<spectrogram::Picture> {
        const auto copied = samples_of(*held);
        if (!copied) return copied.error();
        const auto tell = [&own](double done) { own.done = done; };
        return spectrogram::picture_of_sound(*copied, channels, {}, tell, own.token());
    };
    job->start(Job::Place::own_thread);
    const spectrogram::Picture& made = await_result(*job, on_progress);
    return py::dict("width"_a = made.width, "height"_a = made.height, "channels"_a = made.channels,
                    "pixels"_a = bytes_of(made.pixels), "largest"_a = made.largest);
}

py::dict play_picture(const py::object& pixels, int width, int height, int channels,
                      std::uint64_t seed, std::optional<double> largest,
                      const py::object& on_progress) {
    using Work = PartlyDone<spectrogram::Sound>;
    spectrogram::Parameters parameters;
    parameters.largest = largest.value_or(parameters.largest);
    const Entry entry;
    const auto job = std::make_shared<Work>();
    job->work = [&own = *job, held = std::make_shared<HeldBuffer>(pixels), width, height, channels,
                 seed, parameters]() -> Result<spectrogram::Sound> {
        const auto bytes = held->bytes();
        const spectrogram::PictureView picture{
            .width = width,
            .height = height,
            .channels = channels,
            .pixels = {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}};
        const auto tell = [&own](double done) { own.done = done; };
        return spectrogram::sound_of_picture(picture, seed, parameters, tell, own.token());
    };
    job->start(Job::Place::own_thread);
    const spectrogram::Sound& made = await_result(*job, on_progress);
    return py::dict("samples"_a = bytes_of(made.samples), "channels"_a = made.channels,
                    "sample_rate_hz"_a = parameters.sample_rate_hz);
}

py::bytes finish_sound(const py::object& samples, int channels, int sample_rate_hz) {
    const HeldBuffer held(samples);
    std::optional<Result<std::vector<std::int16_t>>> made;
    without_gil([&] {
        const auto copied = samples_of(held);
        made = copied ? spectrogram::finished(*copied, channels, sample_rate_hz) : copied.error();
    });
    return bytes_of(value_or_raise(std::move(*made)));
}

py::bytes encode_flac(const py::object& samples, int channels, int sample_rate_hz) {
    const HeldBuffer held(samples);
    std::optional<Result<std::vector<std::byte>>> made;
    without_gil([&] {
        const std::span<const std::byte> bytes = held.bytes();
        if (bytes.size() % sizeof(std::int16_t) != 0) {
            made =
                Error{.code = ErrorCode::invalid_argument,
                      .message = "invalid samples: the size must be a multiple of 2 bytes (got " +
                                 std::to_string(bytes.size()) + " bytes)"};
            return;
        }
        std::vector<std::int16_t> copied(bytes.size() / sizeof(std::int16_t));
        if (!copied.empty()) std::memcpy(copied.data(), bytes.data(), bytes.size());
        made = media::encode_flac(copied, channels, sample_rate_hz);
    });
    return bytes_of(value_or_raise(std::move(*made)));
}

}  // namespace

void register_spectrogram(py::module_& module) {
    module.def("draw_sound", &draw_sound, py::arg("samples"), py::arg("channels"),
               py::arg("on_progress"));
    module.def("play_picture", &play_picture, py::arg("pixels"), py::arg("width"),
               py::arg("height"), py::arg("channels"), py::arg("seed"), py::arg("largest"),
               py::arg("on_progress"));
    module.def("finish_sound", &finish_sound, py::arg("samples"), py::arg("channels"),
               py::arg("sample_rate_hz"));
    module.def("encode_flac", &encode_flac, py::arg("samples"), py::arg("channels"),
               py::arg("sample_rate_hz"));
}

}  // namespace polymux::bindings
