#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "media/remux_timeline.hpp"

using namespace polymux;
using namespace polymux::media;

namespace {

constexpr std::int64_t none = AV_NOPTS_VALUE;

struct Times {
    std::int64_t pts;
    std::int64_t dts;
    bool operator==(const Times&) const = default;
};

struct FreeContext {
    void operator()(AVFormatContext* context) const noexcept { avformat_free_context(context); }
};

/// A stream of an open container of this kind, without the container.
class Bench {
public:
    Bench(const char* demuxer, AVCodecID codec) : format_(avformat_alloc_context()) {
        format_->iformat = av_find_input_format(demuxer);
        REQUIRE(format_->iformat != nullptr);
        stream_ = avformat_new_stream(format_.get(), nullptr);
        stream_->codecpar->codec_type = AVMEDIA_TYPE_VIDEO;
        stream_->codecpar->codec_id = codec;
        stream_->time_base = AVRational{1, 1000};
    }

    [[nodiscard]] StreamTimeline timeline() { return {*format_, *stream_, jumps_}; }

private:
    std::unique_ptr<AVFormatContext, FreeContext> format_;
    AVStream* stream_ = nullptr;
    ClockJumps jumps_;
};

void add(StreamTimeline& timeline, Times times, std::int64_t duration = 40) {
    UniquePacket packet(av_packet_alloc());
    packet->pts = times.pts;
    packet->dts = times.dts;
    packet->duration = duration;
    timeline.add(std::move(packet));
}

std::vector<Times> taken(StreamTimeline& timeline) {
    std::vector<Times> result;
    while (!timeline.ready().empty()) {
        const UniquePacket packet = timeline.take();
        result.push_back({packet->pts, packet->dts});
    }
    return result;
}

}  // namespace

TEST_SUITE("remux timeline") {
    TEST_CASE("valid timestamps pass unchanged") {
        Bench bench("mov", AV_CODEC_ID_H264);
        StreamTimeline timeline = bench.timeline();
        const std::vector<Times> times = {{80, 0}, {200, 40}, {120, 80}, {160, 120}};
        for (const Times& one : times) add(timeline, one);
        CHECK(taken(timeline) == times);
        CHECK(timeline.repaired() == 0);
        CHECK(timeline.jumps() == 0);
    }

    TEST_CASE("missing or decreasing timestamps are corrected and counted") {
        Bench bench("mov", AV_CODEC_ID_H264);
        StreamTimeline timeline = bench.timeline();
        for (const Times& one : std::vector<Times>{
                 {none, 0}, {40, none}, {none, none}, {100, 90}, {100, 90}, {70, 95}}) {
            add(timeline, one);
        }
        CHECK(taken(timeline) ==
              std::vector<Times>{{0, 0}, {40, 40}, {80, 80}, {100, 90}, {100, 91}, {95, 95}});
        CHECK(timeline.repaired() == 3);
    }

    TEST_CASE("decoding times follow from the order of the images") {
        Bench bench("matroska", AV_CODEC_ID_H264);
        StreamTimeline timeline = bench.timeline();
        for (const std::int64_t pts : {0, 160, 80, 40, 120, 320, 240, 200, 280}) {
            add(timeline, {pts, pts});
        }
        CHECK(timeline.ready().empty());
        timeline.release();
        CHECK(taken(timeline) == std::vector<Times>{{0, -80},
                                                    {160, -40},
                                                    {80, 0},
                                                    {40, 40},
                                                    {120, 80},
                                                    {320, 120},
                                                    {240, 160},
                                                    {200, 200},
                                                    {280, 240}});
        CHECK(timeline.repaired() == 0);
        // More reordering than detected: late by an image, but in order.
        for (const std::int64_t pts : {600, 560, 520, 480, 440, 400}) add(timeline, {pts, pts});
        std::int64_t last_dts = 240;
        for (const Times& one : taken(timeline)) {
            CHECK(one.dts > last_dts);
            CHECK(one.pts >= one.dts);
            last_dts = one.dts;
        }
        CHECK(timeline.repaired() > 0);
    }

    TEST_CASE("streams of one input remove a jump by the same offset") {
        Bench bench("mpegts", AV_CODEC_ID_H264);
        StreamTimeline video = bench.timeline();
        StreamTimeline audio = bench.timeline();
        for (const std::int64_t time : {1000, 1040, 90'000, 90'040}) add(video, {time, time});
        for (const std::int64_t time : {990, 1030, 1070, 89'995, 90'035}) add(audio, {time, time});
        CHECK(taken(video) ==
              std::vector<Times>{{1000, 1000}, {1040, 1040}, {1080, 1080}, {1120, 1120}});
        CHECK(
            taken(audio) ==
            std::vector<Times>{{990, 990}, {1030, 1030}, {1070, 1070}, {1075, 1075}, {1115, 1115}});
        CHECK(video.jumps() == 1);
        CHECK(audio.jumps() == 1);
    }

    TEST_CASE("a gap in a file is kept, a backward clock is not") {
        Bench bench("mov", AV_CODEC_ID_H264);
        StreamTimeline timeline = bench.timeline();
        for (const std::int64_t time : {0, 60'000, 0, 40}) add(timeline, {time, time});
        CHECK(taken(timeline) ==
              std::vector<Times>{{0, 0}, {60'000, 60'000}, {60'040, 60'040}, {60'080, 60'080}});
    }

    TEST_CASE("absurd numbers stay within range") {
        for (const char* demuxer : {"mov", "mpegts", "matroska"}) {
            Bench bench(demuxer, AV_CODEC_ID_H264);
            StreamTimeline timeline = bench.timeline();
            constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
            const std::vector<std::int64_t> absurd = {most,     -most,     most / 8, -most / 8,
                                                      most / 2, most / 16, 0,        -most / 16,
                                                      1,        none,      most - 1, most / 4};
            for (const std::int64_t pts : absurd) {
                for (const std::int64_t dts : absurd) add(timeline, {pts, dts}, pts);
            }
            timeline.release();
            std::optional<std::int64_t> last_dts;
            for (const Times& one : taken(timeline)) {
                if (last_dts) CHECK(one.dts > *last_dts);
                CHECK(one.pts >= one.dts);
                last_dts = one.dts;
            }
        }
    }
}
