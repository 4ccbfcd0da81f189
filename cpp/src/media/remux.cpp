#include "polymux/media/remux.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "media/formats.hpp"
#include "media/info.hpp"
#include "media/mp4_audio.hpp"
#include "media/progress_clock.hpp"
#include "media/remux_format.hpp"
#include "media/remux_input.hpp"
#include "media/remux_interleave.hpp"
#include "media/remux_output.hpp"
#include "media/seconds_text.hpp"

namespace polymux::media {

namespace {

/// Inputs that begin further apart do not share a clock.
constexpr std::int64_t same_clock_us = 10'000'000;

/// Moves chapters to the output's clock; drops those outside of any possible output.
void move_chapters(std::vector<Chapter>& chapters, std::int64_t zero_ms, double limit_s) {
    const std::int64_t limit_ms = std::llround(std::min(limit_s, 1e9) * 1000);
    std::erase_if(chapters, [&](const Chapter& chapter) {
        return chapter.start_ms < zero_ms - limit_ms || chapter.start_ms > zero_ms + limit_ms;
    });
    for (Chapter& chapter : chapters) {
        const std::int64_t end_ms =
            std::clamp(chapter.end_ms, chapter.start_ms, zero_ms + limit_ms);
        chapter.start_ms = std::max<std::int64_t>(0, chapter.start_ms - zero_ms);
        chapter.end_ms = std::max(chapter.start_ms, end_ms - zero_ms);
    }
}

/// One run of `remux`.
class Remuxer {
public:
    Remuxer(const RemuxOptions& options, const ProgressCallback& on_progress,
            const CancelToken& token)
        : options_(options), on_progress_(on_progress), token_(token) {}

    Result<void> open(std::span<ByteSource* const> sources);
    Result<void> choose_streams();
    Result<void> begin(ByteSink& sink);
    Result<void> write_all();
    Result<RemuxReport> finish();

private:
    Result<void> take(std::optional<int> input, int index);
    Result<void> write_next(std::size_t index);
    Result<void> set_metadata();
    void set_zeros();
    void leave_room_for_lead();
    Result<void> tell(bool last);
    Result<void> fill() { return fill_tracks(inputs_, tracks_); }
    void collect_warnings(RemuxReport& report);

    const RemuxOptions& options_;
    const ProgressCallback& on_progress_;
    CancelToken token_;
    Clock::time_point start_ = Clock::now();
    Clock::time_point next_tell_ = start_;
    std::vector<std::unique_ptr<RemuxInput>> inputs_;
    std::vector<RemuxTrack*> tracks_;     ///< Tracks of all inputs, in the output's order.
    std::vector<std::int64_t> packets_;   ///< Packets written, for each track.
    std::vector<std::int64_t> zeros_us_;  ///< For each input, the time that becomes 0.
    RemuxFormat format_;
    std::unique_ptr<RemuxOutput> output_;
    std::optional<double> expected_s_;
    std::int64_t end_us_ = 0;
    std::int64_t unusable_packets_ = 0;
};

Result<void> Remuxer::open(std::span<ByteSource* const> sources) {
    if (sources.empty() || sources.size() > 2) {
        return Error{.code = ErrorCode::invalid_argument,
                     .message = "invalid number of inputs (got " + std::to_string(sources.size()) +
                                ", allowed 1 or 2)"};
    }
    for (ByteSource* source : sources) {
        Result<OpenedInput> opened = OpenedInput::open(*source, options_.limits, token_);
        if (!opened) return opened.error();
        inputs_.push_back(
            std::make_unique<RemuxInput>(std::move(*opened), static_cast<int>(inputs_.size())));
    }
    return {};
}

Result<void> Remuxer::choose_streams() {
    std::optional<int> video_input;
    std::optional<int> audio_input;
    int video = 0;
    int audio = 0;
    for (std::size_t number = 0; number < inputs_.size(); ++number) {
        const AVFormatContext& format = inputs_[number]->format();
        const std::optional<int> best_video = best_video_stream(format);
        if (best_video && !video_input) {
            video_input = static_cast<int>(number);
            video = *best_video;
        }
        if (const std::optional<int> best_audio = best_audio_stream(format)) {
            audio_input = static_cast<int>(number);
            audio = *best_audio;
        }
    }
    if (!video_input && !audio_input) {
        return Error{.code = ErrorCode::no_audio,
                     .message = "the inputs have neither a video nor an audio stream",
                     .input_name = inputs_.front()->name()};
    }
    if (Result<void> taken = take(video_input, video); !taken) return taken;
    if (Result<void> taken = take(audio_input, audio); !taken) return taken;
    for (const auto& input : inputs_) input->discard_others();
    packets_.assign(tracks_.size(), 0);
    return {};
}

Result<void> Remuxer::take(std::optional<int> input, int index) {
    if (!input) return {};
    RemuxInput& source = *inputs_[static_cast<std::size_t>(*input)];
    if (Result<void> taken = source.take(index); !taken) return taken;
    tracks_.push_back(source.tracks().back().get());
    if (const auto duration_s = source.duration_s()) {
        expected_s_ = std::max(expected_s_.value_or(0), *duration_s);
    }
    return {};
}

Result<void> Remuxer::begin(ByteSink& sink) {
    RemuxCodecs codecs;
    for (const RemuxTrack* track : tracks_) {
        const AVCodecParameters& parameters = *track->stream->codecpar;
        const bool video = parameters.codec_type == AVMEDIA_TYPE_VIDEO;
        (video ? codecs.video : codecs.audio) = parameters.codec_id;
        if (!video) codecs.audio_has_mp4_header = has_mp4_header(parameters);
    }
    Result<RemuxFormat> format = choose_remux_format(codecs, options_.container);
    if (!format) return format.error();
    format_ = *format;
    Result<std::unique_ptr<RemuxOutput>> output = RemuxOutput::create(sink, format_, token_);
    if (!output) return output.error();
    output_ = std::move(*output);
    if (Result<void> filled = fill(); !filled) return filled;
    const bool empty = std::all_of(tracks_.begin(), tracks_.end(), [](const RemuxTrack* track) {
        return track->timeline.ready().empty();
    });
    if (empty) {
        return Error{.code = ErrorCode::undecodable,
                     .message = "the input's streams contain no data",
                     .input_name = inputs_.front()->name()};
    }
    set_zeros();
    for (const RemuxTrack* track : tracks_) {
        const auto& ready = track->timeline.ready();
        const AVPacket* first = ready.empty() ? nullptr : ready.front().get();
        if (Result<void> added = output_->add_stream(*track->stream, first); !added) return added;
    }
    if (Result<void> set = set_metadata(); !set) return set;
    return output_->begin();
}

// The start of the presentation becomes 0: separately for each input, or for all together.
void Remuxer::set_zeros() {
    zeros_us_.assign(inputs_.size(), 0);
    for (std::size_t number = 0; number < inputs_.size(); ++number) {
        zeros_us_[number] = inputs_[number]->start_us().value_or(0);
    }
    const bool both =
        inputs_.size() == 2 && !inputs_[0]->tracks().empty() && !inputs_[1]->tracks().empty();
    if (both && inputs_[0]->format().iformat == inputs_[1]->format().iformat &&
        std::abs(zeros_us_[0] - zeros_us_[1]) <= same_clock_us) {
        const std::int64_t earlier = std::min(zeros_us_[0], zeros_us_[1]);
        zeros_us_.assign(2, earlier);
    }
    if (format_.container != RemuxContainer::mp4) leave_room_for_lead();
    for (RemuxTrack* track : tracks_) {
        track->zero = bounded_rescale(zeros_us_[static_cast<std::size_t>(track->input)],
                                      microseconds, track->timeline.time_base());
    }
}

// Matroska has no times before 0, except for the part that a decoder must drop.
void Remuxer::leave_room_for_lead() {
    std::int64_t lead_us = 0;
    for (const RemuxTrack* track : tracks_) {
        const auto& ready = track->timeline.ready();
        if (ready.empty()) continue;
        const AVStream& stream = *track->stream;
        const std::int64_t first_us =
            bounded_rescale(ready.front()->pts, stream.time_base, microseconds);
        const std::int64_t zero_us = zeros_us_[static_cast<std::size_t>(track->input)];
        lead_us = std::max(lead_us, zero_us - first_us - decoder_delay_us(*stream.codecpar));
    }
    constexpr std::int64_t tick_us = 1000;
    if (lead_us < tick_us) return;
    for (std::int64_t& zero : zeros_us_) zero -= lead_us;
}

Result<void> Remuxer::set_metadata() {
    Tags tags;
    std::vector<Chapter> chapters;
    for (std::size_t number = 0; number < inputs_.size(); ++number) {
        const AVFormatContext& format = inputs_[number]->format();
        CarriedMetadata carried = carried_metadata(format, best_audio_stream(format).value_or(-1));
        for (auto& entry : carried.tags) {
            const bool known = std::any_of(tags.begin(), tags.end(), [&](const auto& tag) {
                return tag.first == entry.first;
            });
            if (!known) tags.push_back(std::move(entry));
        }
        if (!chapters.empty()) continue;
        chapters = std::move(carried.chapters);
        move_chapters(chapters, zeros_us_[number] / 1000, options_.limits.duration_s);
    }
    return output_->set_metadata(tags, chapters);
}

Result<void> Remuxer::write_all() {
    for (;;) {
        if (token_.cancelled()) {
            return Error{.code = ErrorCode::cancelled, .message = "the operation was canceled"};
        }
        if (Result<void> filled = fill(); !filled) return filled;
        const std::optional<std::size_t> next = earliest_track(tracks_);
        if (!next) return {};
        if (Result<void> written = write_next(*next); !written) return written;
        if (Result<void> reported = tell(false); !reported) return reported;
    }
}

Result<void> Remuxer::write_next(std::size_t index) {
    RemuxTrack& track = *tracks_[index];
    const UniquePacket packet = track.timeline.take();
    track.waiting_bytes -= packet->size;
    end_us_ = std::max(end_us_, track.output_us(packet->pts + packet->duration));
    const double limit_s = options_.limits.duration_s;
    if (static_cast<double>(end_us_) / AV_TIME_BASE > limit_s) {
        return Error{
            .code = ErrorCode::limit_exceeded,
            .message = "the input is too long (limit duration_s=" + seconds_text(limit_s) + ")",
            .input_name = inputs_[static_cast<std::size_t>(track.input)]->name()};
    }
    Result<bool> written = output_->write(index, *packet, track.timeline.time_base(), track.zero);
    if (!written) return written.error();
    ++(*written ? packets_[index] : unusable_packets_);
    return {};
}

Result<RemuxReport> Remuxer::finish() {
    const auto nothing = [](std::int64_t packets) { return packets == 0; };
    if (std::all_of(packets_.begin(), packets_.end(), nothing)) {
        return Error{.code = ErrorCode::undecodable,
                     .message = "none of the input's packets could be used",
                     .input_name = inputs_.front()->name()};
    }
    if (Result<void> finished = output_->finish(); !finished) return finished.error();
    if (Result<void> reported = tell(true); !reported) return reported.error();
    RemuxReport report;
    report.container = format_.name;
    report.content_type = format_.content_type;
    report.extension = format_.extension;
    report.duration_s = static_cast<double>(end_us_) / AV_TIME_BASE;
    report.bytes = output_->bytes();
    for (std::size_t index = 0; index < tracks_.size(); ++index) {
        const AVStream& stream = *tracks_[index]->stream;
        report.streams.push_back({.input = tracks_[index]->input,
                                  .index = stream.index,
                                  .type = av_get_media_type_string(stream.codecpar->codec_type),
                                  .codec = avcodec_get_name(stream.codecpar->codec_id),
                                  .packets = packets_[index]});
    }
    collect_warnings(report);
    return report;
}

void Remuxer::collect_warnings(RemuxReport& report) {
    std::int64_t repaired = 0;
    std::int64_t jumps = 0;
    for (const RemuxTrack* track : tracks_) {
        repaired += track->timeline.repaired();
        jumps += track->timeline.jumps();
    }
    for (const auto& input : inputs_) {
        report.warnings.insert(report.warnings.end(), input->warnings().begin(),
                               input->warnings().end());
    }
    if (unusable_packets_ > 0) {
        report.warnings.push_back({.code = "unusable_packet",
                                   .message = "a damaged packet that cannot be copied was dropped",
                                   .count = unusable_packets_});
    }
    if (repaired > 0) {
        report.warnings.push_back(
            {.code = "repaired_time_stamps",
             .message = "a timestamp that was missing or did not increase was replaced",
             .count = repaired});
    }
    if (jumps > 0) {
        report.warnings.push_back({.code = "clock_jumps",
                                   .message = "a jump in the input's timestamps was removed",
                                   .count = jumps});
    }
}

/// Reports at most ten times a second, and once at the end.
Result<void> Remuxer::tell(bool last) {
    if (!on_progress_) return {};
    const Clock::time_point now = Clock::now();
    if (!last && now < next_tell_) return {};
    next_tell_ = now + progress_interval;
    const double position_s = static_cast<double>(end_us_) / AV_TIME_BASE;
    const bool goes_on = on_progress_({.position_s = position_s,
                                       .duration_s = last ? position_s : expected_s_,
                                       .bytes_written = output_->bytes(),
                                       .elapsed_s = seconds_since(start_)});
    if (goes_on) return {};
    return Error{.code = ErrorCode::callback_failed,
                 .message = "the progress callback stopped the operation"};
}

Result<RemuxReport> run(std::span<ByteSource* const> sources, ByteSink& sink,
                        const RemuxOptions& options, const ProgressCallback& on_progress,
                        const CancelToken& token) {
    Remuxer remuxer(options, on_progress, token);
    if (Result<void> done = remuxer.open(sources); !done) return done.error();
    if (Result<void> done = remuxer.choose_streams(); !done) return done.error();
    if (Result<void> done = remuxer.begin(sink); !done) return done.error();
    if (Result<void> done = remuxer.write_all(); !done) return done.error();
    Result<RemuxReport> report = remuxer.finish();
    if (!report) return report;
    if (Result<void> committed = sink.commit(); !committed) return committed.error();
    return report;
}

}  // namespace

Result<RemuxReport> remux(std::span<ByteSource* const> sources, ByteSink& sink,
                          const RemuxOptions& options, const ProgressCallback& on_progress,
                          const CancelToken& token) try {
    const Clock::time_point start = Clock::now();
    const LogCapture capture;
    Result<RemuxReport> report = run(sources, sink, options, on_progress, token);
    if (report) {
        report->elapsed_s = seconds_since(start);
    } else if (report.error().input_name.empty() && !sources.empty()) {
        report.error().input_name = sources.front()->name();
    }
    return report;
} catch (const std::bad_alloc&) {
    return Error{.code = ErrorCode::out_of_memory,
                 .message = "not enough memory to remux the input"};
}

}  // namespace polymux::media
