// Demux, decode, trim, convert: planar samples of one audio stream, in order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "media/ffmpeg.hpp"
#include "media/opened_input.hpp"
#include "media/resampler.hpp"
#include "media/trim.hpp"
#include "polymux/media/convert.hpp"

namespace polymux::media {

struct ReaderOptions {
    std::optional<int> audio_stream = {};
    std::optional<double> start_s = {};
    std::optional<double> end_s = {};
    std::optional<int> sample_rate_hz = {};               ///< Default: ffmpeg's choice for MP3.
    std::optional<int> channels = {};                     ///< Default: ffmpeg's choice for MP3.
    std::optional<mp3::SampleFormat> sample_format = {};  ///< Default: ffmpeg's choice for MP3.
    bool strict = false;
};

/// One pass over one audio stream. Not thread-safe; may move between threads between calls.
class AudioReader {
public:
    /// Selects the stream and decodes up to the first samples, which decide `format()`. Errors:
    /// `no_audio`, `encrypted`, `unsupported_media`, `undecodable`, `limit_exceeded`, `cancelled`.
    static Result<std::unique_ptr<AudioReader>> open(OpenedInput& input,
                                                     const ReaderOptions& options);

    [[nodiscard]] const PcmFormat& format() const noexcept { return queue_->format(); }
    [[nodiscard]] const AVStream& stream() const noexcept { return *stream_; }
    [[nodiscard]] int stream_index() const noexcept { return stream_->index; }
    [[nodiscard]] std::string codec_name() const;
    [[nodiscard]] int input_rate_hz() const noexcept { return input_rate_hz_; }

    /// Returns the next `samples`, fewer only at the end, none after it. The block is valid until
    /// the next call.
    Result<mp3::PcmBlock> read(int samples);

    /// Expected output duration in seconds, if the container states it.
    [[nodiscard]] std::optional<double> expected_duration_s() const;
    [[nodiscard]] std::int64_t damaged_packets() const noexcept { return damaged_packets_; }
    /// Whether the samples so far are certainly those of ffmpeg.
    [[nodiscard]] bool matches_ffmpeg() const noexcept;
    /// Damage and format changes so far; repetitions are merged.
    [[nodiscard]] const std::vector<Warning>& warnings() const noexcept { return warnings_; }

private:
    AudioReader(OpenedInput& input, const ReaderOptions& options)
        : input_(input), options_(options) {}

    Result<void> choose_stream();
    Result<void> check_declared_duration();
    Result<void> open_decoder();
    void seek_to_start();
    void choose_format(const AVFrame& frame);

    /// Decodes until the queue has more samples, or the end is reached.
    Result<void> advance();
    /// After the last input: delivers the samples that the resampler still holds.
    Result<void> finish();
    Result<void> receive_frames();
    Result<void> accept(AVFrame& frame);
    Result<void> convert_part();
    Result<void> check_frame(const AVFrame& frame) const;
    Result<void> damage(const char* code, std::string message, int averror);
    void note_change(const AVFrame& frame);
    void warn(const char* code, std::string message);

    OpenedInput& input_;
    ReaderOptions options_;
    AVStream* stream_ = nullptr;  // Owned by input_.
    UniqueCodecContext decoder_;
    UniquePacket packet_;
    UniqueFrame frame_;
    int frame_position_ = 0;  // Number of its samples already converted.
    std::optional<PcmQueue> queue_;
    std::optional<Resampler> resampler_;
    bool packets_ended_ = false;
    bool ended_ = false;
    std::optional<Trimmer> trimmer_;
    int given_ = 0;  // Samples at the front of the queue that the caller still uses.
    int empty_reads_ = 0;
    int input_rate_hz_ = 0;
    ChannelLayout input_layout_;
    int input_format_ = AV_SAMPLE_FMT_NONE;
    bool format_changed_ = false;
    double decoded_s_ = 0;
    std::int64_t damaged_packets_ = 0;
    std::vector<Warning> warnings_;
};

}  // namespace polymux::media
