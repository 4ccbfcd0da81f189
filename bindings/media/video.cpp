#include "video.hpp"

#include <unistd.h>

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <pybind11/stl.h>

#include "job.hpp"
#include "options.hpp"
#include "polymux/video/reader.hpp"
#include "polymux/video/writer.hpp"
#include "python_bytes.hpp"
#include "python_sink.hpp"
#include "python_source.hpp"

namespace polymux::bindings {
namespace {

using video::VideoCodec;
using namespace py::literals;  // NOLINT(google-build-using-namespace)

constexpr std::array<std::pair<const char*, VideoCodec>, 3> codecs{
    {{"auto", VideoCodec::automatic}, {"h264", VideoCodec::h264}, {"vp9", VideoCodec::vp9}}};

VideoCodec codec_of(const std::string& name) {
    for (const auto& [text, codec] : codecs) {
        if (name == text) {
            return codec;
        }
    }
    raise(
        {.code = ErrorCode::invalid_argument,
         .message = "codec: invalid value (got '" + name + "', allowed 'auto', 'h264' or 'vp9')"});
}

py::tuple to_tuple(const video::FrameRate& fps) {
    return py::make_tuple(fps.numerator, fps.denominator);
}

/// A video being written to a file. If a signal ends a call's wait, the abandoned work continues
/// with this object until it sees the cancellation.
struct Writing {
    CancelToken token;
    std::mutex mutex;  ///< Held by the one writing thread.
    std::unique_ptr<media::ByteSink> sink;
    std::unique_ptr<video::VideoWriter> writer;  ///< Destroyed before the sink that it writes to.
};

class PythonVideoWriter {
public:
    PythonVideoWriter(const py::bytes& path, const video::VideoFormat& format,
                      const video::VideoWriterOptions& options, bool overwrite)
        : process_(getpid()), writing_(std::make_shared<Writing>()) {
        encoder_ = awaited<std::string>(
            [path = std::string(path), format, options, overwrite](Writing& writing) {
                return opened(writing, path, format, options, overwrite);
            });
    }
    PythonVideoWriter(const PythonVideoWriter&) = delete;
    PythonVideoWriter& operator=(const PythonVideoWriter&) = delete;

    ~PythonVideoWriter() {
        if (process_ != getpid()) {
            // The encoder's threads exist only in the parent; waiting for them here would never
            // end.
            static_cast<void>(writing_->writer.release());
        }
    }

    void write(const py::object& frame) {
        const auto held = std::make_shared<HeldBuffer>(frame);
        with_writer<bool>([held](video::VideoWriter& writer) -> Result<bool> {
            if (auto written = writer.write(held->bytes()); !written) {
                return written.error();
            }
            return true;
        });
    }

    py::dict finish() {
        const auto report = with_writer<video::VideoReport>(
            [](video::VideoWriter& writer) { return writer.finish(); });
        return py::dict("codec"_a = report.codec, "encoder"_a = report.encoder,
                        "width"_a = report.width, "height"_a = report.height,
                        "fps"_a = to_tuple(report.fps), "frames"_a = report.frames,
                        "duration_s"_a = report.duration_s, "bytes"_a = report.bytes);
    }

    void close() const {
        if (process_ != getpid()) {
            return;
        }
        cancel();
        without_gil([this] {
            const std::scoped_lock lock(writing_->mutex);
            writing_->writer.reset();
            writing_->sink.reset();
        });
    }

    [[nodiscard]] std::string encoder() const { return encoder_; }
    void cancel() const { writing_->token.cancel(); }

private:
    template <typename T>
    T with_writer(std::function<Result<T>(video::VideoWriter&)> work) const {
        return awaited<T>([work = std::move(work)](Writing& writing) -> Result<T> {
            if (writing.writer == nullptr) {
                return Error{.code = ErrorCode::invalid_argument, .message = "the video is closed"};
            }
            return work(*writing.writer);
        });
    }

    static Result<std::string> opened(Writing& writing, const std::string& path,
                                      const video::VideoFormat& format,
                                      const video::VideoWriterOptions& options, bool overwrite) {
        auto sink = media::create_file_sink(path, {.overwrite = overwrite});
        if (!sink) {
            return sink.error();
        }
        auto writer = video::VideoWriter::create(**sink, format, options, writing.token);
        if (!writer) {
            return writer.error();
        }
        writing.sink = std::move(*sink);
        writing.writer = std::move(*writer);
        return writing.writer->encoder();
    }

    template <typename T>
    T awaited(std::function<Result<T>(Writing&)> work) const {
        if (process_ != getpid()) {
            raise({.code = ErrorCode::invalid_argument,
                   .message =
                       "the video was started in another process, before a fork. Start a new "
                       "one in this process"});
        }
        const Entry entry;
        const auto job = std::make_shared<ResultJob<T>>();
        job->work = [work = std::move(work), writing = writing_] {
            const std::scoped_lock lock(writing->mutex);
            return work(*writing);
        };
        job->start(Job::Place::own_thread);
        try {
            job->await();
        } catch (const std::exception&) {
            cancel();
            throw;
        }
        return job->get();
    }

    const pid_t process_;
    const std::shared_ptr<Writing> writing_;
    std::string encoder_;
};

std::unique_ptr<PythonVideoWriter> new_writer(const py::bytes& path, int width, int height,
                                              std::pair<int, int> fps, const std::string& codec,
                                              int quality, int threads, bool overwrite) {
    const video::VideoFormat format{
        .width = width, .height = height, .fps = {fps.first, fps.second}};
    const video::VideoWriterOptions options{
        .codec = codec_of(codec), .quality = quality, .threads = threads};
    return std::make_unique<PythonVideoWriter>(path, format, options, overwrite);
}

Result<video::FramesReport> run_read(Input& input, Output& output,
                                     const video::FrameOptions& options, const CancelToken& token) {
    auto source = input.open();
    if (!source) {
        return source.error();
    }
    auto sink = output.open((*source)->identity());
    if (!sink) {
        return sink.error();
    }
    std::optional<Error> failure;
    const auto keep = [&](std::span<const std::byte> frame) {
        if (auto written = (*sink)->write(frame); !written) {
            failure = written.error();
        }
        return !failure;
    };
    auto report = video::read_frames(**source, keep, options, token);
    if (failure) {
        return *failure;
    }
    if (!report) {
        return report;
    }
    if (auto committed = (*sink)->commit(); !committed) {
        return committed.error();
    }
    return report;
}

py::dict read_frames(const py::object& source, const py::object& destination, int width, int height,
                     std::pair<int, int> fps, int max_frames, std::int64_t frame_pixels,
                     const py::object& limits, bool overwrite, const py::object& check) {
    const video::FrameOptions options{.width = width,
                                      .height = height,
                                      .fps = {fps.first, fps.second},
                                      .max_frames = max_frames,
                                      .limits = copy_limits(limits),
                                      .video_limits = {.frame_pixels = frame_pixels}};
    const Entry entry;
    const auto job = std::make_shared<ResultJob<video::FramesReport>>();
    job->work = [input = Input::parse(source, *job),
                 output = Output::parse(destination, overwrite, *job), options,
                 token = job->token()] { return run_read(*input, *output, options, token); };
    job->start(Job::Place::own_thread);
    job->await([&] {
        if (!check.is_none()) {
            invoke(check);
        }
    });
    const video::FramesReport& report = job->get();
    return py::dict("frames"_a = report.frames, "width"_a = report.width,
                    "height"_a = report.height, "fps"_a = to_tuple(report.fps),
                    "container"_a = to_text(report.container), "codec"_a = to_text(report.codec),
                    "input_width"_a = report.input_width, "input_height"_a = report.input_height,
                    "damaged_packets"_a = report.damaged_packets);
}

}  // namespace

void register_video(py::module_& module) {
    py::class_<PythonVideoWriter>(module, "VideoWriter", py::is_final(), plain_metaclass(),
                                  "A polymux::video::VideoWriter that writes to a file.")
        .def(py::init(&new_writer), py::arg("path"), py::arg("width"), py::arg("height"),
             py::arg("fps"), py::arg("codec"), py::arg("quality"), py::arg("threads"),
             py::arg("overwrite"))
        .def("__reduce__", &refuse_pickling)
        .def("write", &PythonVideoWriter::write, py::arg("frame"))
        .def("finish", &PythonVideoWriter::finish)
        .def("cancel", &PythonVideoWriter::cancel)
        .def("close", &PythonVideoWriter::close)
        .def_property_readonly("encoder", &PythonVideoWriter::encoder);
    module.def("read_frames", &read_frames, py::arg("source"), py::arg("destination"),
               py::arg("width"), py::arg("height"), py::arg("fps"), py::arg("max_frames"),
               py::arg("frame_pixels"), py::arg("limits"), py::arg("overwrite"), py::arg("check"));
}

}  // namespace polymux::bindings
