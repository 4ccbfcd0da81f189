#include "media/conversion_plan.hpp"

#include <algorithm>
#include <cmath>

extern "C" {
#include <libavutil/mathematics.h>
#include <libavutil/replaygain.h>
}

#include "media/info.hpp"
#include "polymux/media/mp3/frame.hpp"
#include "polymux/media/mp3/id3.hpp"
#include "polymux/pool.hpp"

namespace polymux::media {

namespace {

// The values of LAME's tag field "VBR method".
constexpr int tag_method_cbr = 1;
constexpr int tag_method_abr = 2;
constexpr int tag_method_vbr = 4;

mp3::EncoderSettings encoder_settings(const AudioReader& reader, const ConvertOptions& options) {
    const PcmFormat& format = reader.format();
    mp3::EncoderSettings settings;
    settings.sample_rate_hz = format.sample_rate_hz;
    settings.channels = format.channels;
    settings.sample_format = format.sample_format;
    settings.preset = options.preset;
    if (options.bitrate_bps) {
        settings.rate_control = options.abr ? mp3::RateControl::abr : mp3::RateControl::cbr;
        settings.bitrate_bps = *options.bitrate_bps;
    } else {
        settings.rate_control = mp3::RateControl::vbr;
        settings.vbr_quality = options.vbr_quality.value_or(0);
    }
    return settings;
}

std::string ffmpeg_encoder_name() {
    const unsigned version = avcodec_version();
    return "Lavc" + std::to_string(AV_VERSION_MAJOR(version)) + "." +
           std::to_string(AV_VERSION_MINOR(version)) + "." +
           std::to_string(AV_VERSION_MICRO(version));
}

std::optional<mp3::ReplayGain> replay_gain(const AVStream& stream) {
    const auto bytes = side_data(stream, AV_PKT_DATA_REPLAYGAIN);
    if (bytes.size() < sizeof(AVReplayGain)) return std::nullopt;
    const auto* found = reinterpret_cast<const AVReplayGain*>(bytes.data());
    mp3::ReplayGain gain;
    if (found->track_gain != INT32_MIN) gain.track_gain = found->track_gain;
    if (found->album_gain != INT32_MIN) gain.album_gain = found->album_gain;
    gain.track_peak = found->track_peak;
    return gain;
}

// LAME's quality field: 100 minus ten for each VBR step, minus its algorithm's quality.
int quality_field(const mp3::EncoderSettings& encoder) {
    constexpr int default_vbr_step = 4;  // LAME's default at a constant or average bitrate.
    const int vbr_step = encoder.rate_control == mp3::RateControl::vbr
                             ? static_cast<int>(encoder.vbr_quality)
                             : default_vbr_step;
    switch (encoder.preset) {
        case Preset::ffmpeg:
            return 100 - 10 * vbr_step - 3;
        case Preset::best:
            return 100 - 10 * vbr_step - 4;
        case Preset::fast:
            return 100 - 10 * vbr_step - 7;
    }
    return 0;
}

mp3::XingSettings xing_settings(const mp3::EncoderSettings& encoder, const AudioReader& reader,
                                const ConvertOptions& options) {
    constexpr std::size_t encoder_name_bytes = 9;
    mp3::XingSettings settings;
    settings.sample_rate_hz = encoder.sample_rate_hz;
    settings.channels = encoder.channels;
    settings.bitrate_bps = encoder.rate_control == mp3::RateControl::vbr ? 0 : encoder.bitrate_bps;
    settings.as_ffmpeg = options.identical_file;
    settings.source_rate_hz = reader.input_rate_hz();
    settings.replay_gain = replay_gain(reader.stream());
    if (options.identical_file) {
        settings.encoder = ffmpeg_encoder_name().substr(0, encoder_name_bytes);
        return settings;
    }
    std::string name = mp3::lame_version();
    std::erase(name, ' ');
    settings.encoder = name.substr(0, encoder_name_bytes);
    switch (encoder.rate_control) {
        case mp3::RateControl::cbr:
            settings.vbr_method = tag_method_cbr;
            break;
        case mp3::RateControl::abr:
            settings.vbr_method = tag_method_abr;
            break;
        case mp3::RateControl::vbr:
            settings.vbr_method = tag_method_vbr;
            break;
    }
    settings.vbr_scale = quality_field(encoder);
    return settings;
}

// Moves chapters to the output's clock; drops those outside the selected range.
std::vector<Chapter> shift_chapters(std::vector<Chapter> chapters, std::int64_t offset_ms,
                                    std::optional<std::int64_t> duration_ms) {
    std::vector<Chapter> kept;
    for (Chapter& chapter : chapters) {
        if (chapter.end_ms < offset_ms) continue;
        if (duration_ms && chapter.start_ms > offset_ms + *duration_ms) break;
        chapter.start_ms = std::max<std::int64_t>(0, chapter.start_ms - offset_ms);
        chapter.end_ms -= offset_ms;
        if (duration_ms) chapter.end_ms = std::min(chapter.end_ms, *duration_ms);
        kept.push_back(std::move(chapter));
    }
    return kept;
}

std::int64_t to_ms(double seconds) {
    return std::llround(seconds * 1000);
}

mp3::Id3Content tag_content(const AVFormatContext& format, int audio_stream,
                            const ConvertOptions& options) {
    CarriedMetadata carried =
        options.identical_file ? ffmpeg_metadata(format) : carried_metadata(format, audio_stream);
    std::int64_t offset_ms = to_ms(options.start_s.value_or(0));
    if (format.start_time != AV_NOPTS_VALUE) {
        offset_ms += av_rescale_q(format.start_time, microseconds, AVRational{1, 1000});
    }
    std::optional<std::int64_t> duration_ms;
    if (options.end_s) duration_ms = to_ms(*options.end_s - options.start_s.value_or(0));
    mp3::Id3Content content;
    if (options.identical_file || options.tags == MetadataMode::copy) {
        content.tags = std::move(carried.tags);
        content.chapters = shift_chapters(std::move(carried.chapters), offset_ms, duration_ms);
    }
    if (options.replace_tags) content.tags = *options.replace_tags;
    if (!options.identical_file && options.cover == MetadataMode::copy) {
        content.cover = std::move(carried.cover);
    }
    if (options.replace_cover) content.cover = options.replace_cover;
    return content;
}

void warn_of_bitrate(const mp3::EncoderSettings& encoder, std::vector<Warning>& warnings) {
    if (encoder.rate_control != mp3::RateControl::cbr) return;
    const int legal_bps = mp3::nearest_bitrate(encoder.bitrate_bps, encoder.sample_rate_hz);
    if (legal_bps == encoder.bitrate_bps) return;
    warnings.push_back(
        {.code = "bitrate_adjusted",
         .message = "MP3 does not support " + std::to_string(encoder.bitrate_bps) + " bit/s at " +
                    std::to_string(encoder.sample_rate_hz) +
                    " Hz. The nearest bitrate was used: " + std::to_string(legal_bps) + " bit/s"});
}

mp3::SegmentPlan segment_plan(const ConversionPlan& plan, const AudioReader& reader,
                              const ConvertOptions& options, bool can_patch) {
    const bool constant = plan.encoder.rate_control == mp3::RateControl::cbr;
    // If segments depend only on the duration, a single thread must encode them too.
    const bool exact = options.exact || options.identical_file;
    if (constant ? plan.threads == 1 : exact) return {};
    std::optional<std::int64_t> samples;
    if (const std::optional<double> duration_s = reader.expected_duration_s()) {
        samples = std::llround(*duration_s * plan.encoder.sample_rate_hz);
    }
    const int workers = 1 + std::min(plan.threads - 1, Pool::instance().spare());
    return mp3::plan_segments(
        {.encoder = plan.encoder, .samples = samples, .workers = workers, .streaming = !can_patch});
}

}  // namespace

const char* to_string(mp3::RateControl rate_control) noexcept {
    switch (rate_control) {
        case mp3::RateControl::cbr:
            return "cbr";
        case mp3::RateControl::abr:
            return "abr";
        case mp3::RateControl::vbr:
            return "vbr";
    }
    return "";
}

ConversionPlan plan_conversion(const OpenedInput& input, const AudioReader& reader,
                               const ConvertOptions& options, bool can_patch) {
    ConversionPlan plan;
    plan.encoder = encoder_settings(reader, options);
    plan.xing = xing_settings(plan.encoder, reader, options);
    plan.threads = options.threads > 0 ? options.threads : Pool::instance().size();
    plan.segments = segment_plan(plan, reader, options, can_patch);
    // ffmpeg writes no Xing/Info frame to a pipe.
    plan.xing_frame = can_patch || !options.identical_file;
    warn_of_bitrate(plan.encoder, plan.warnings);
    std::vector<std::string> dropped;
    plan.tag = mp3::write_id3v2(tag_content(input.format(), reader.stream_index(), options),
                                {.version = options.identical_file ? 4 : options.id3v2_version,
                                 .as_ffmpeg = options.identical_file},
                                &dropped);
    for (const std::string& name : dropped) {
        plan.warnings.push_back(
            {.code = "tag_dropped",
             .message = "'" + name + "' cannot be stored in the ID3v2 tag and was dropped"});
    }
    return plan;
}

}  // namespace polymux::media
