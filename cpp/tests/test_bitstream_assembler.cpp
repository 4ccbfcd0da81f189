#include <doctest/doctest.h>

#include "media/mp3/bitstream_assembler.hpp"
#include "media/mp3/coded_frame.hpp"
#include "media/mp3/segment_plan.hpp"
#include "parallel_support.hpp"
#include "support.hpp"

using namespace polymux;
using namespace polymux::media::mp3;
using namespace polymux::testing;

namespace {

/// The assembler's output for frames, from their coded content alone.
std::vector<std::string> laid_out(const Encoded& encoded, const EncoderSettings& settings) {
    const StreamShape shape = shape_of(settings);
    FrameSplitter splitter(shape);
    BitstreamAssembler assembler(shape, lame_version().substr(5));
    std::vector<std::string> output;
    const auto keep = [&output](std::span<const std::byte> frame) -> Result<void> {
        output.push_back(as_text(frame));
        return {};
    };
    for (std::size_t number = 0; number < encoded.frames.size(); ++number) {
        auto coded = splitter.split(as_bytes(encoded.frames[number]), encoded.demands[number]);
        REQUIRE(coded);
        set_layout(coded->head, shape.version, {.bitrate_index = 1}, 0);
        REQUIRE(assembler.add(std::move(*coded), keep));
    }
    REQUIRE(assembler.finish(keep));
    CHECK(assembler.bumped_frames() == 0);
    return output;
}

/// A frame coded with `bits` of main data.
CodedFrame frame_of(int bits, const StreamShape& shape) {
    CodedFrame frame;
    frame.head.resize(static_cast<std::size_t>(shape.head_bytes()));
    frame.head[0] = std::byte{0xFF};
    frame.head[1] = std::byte{0xFB};
    frame.main_data.resize(static_cast<std::size_t>((bits + 7) / 8));
    frame.main_data_bits = bits;
    return frame;
}

}  // namespace

TEST_SUITE("assembler") {
    TEST_CASE("frames of one encoder are reproduced in every mode") {
        struct Case {
            EncoderSettings settings;
            const char* name;
        };
        for (const Case& row :
             {Case{cbr(128'000), "CBR 128"}, Case{cbr(320'000), "CBR 320"},
              Case{cbr(32'000, 22'050, 1), "CBR 32, MPEG 2"},
              Case{cbr(16'000, 8'000, 1), "CBR 16, MPEG 2.5"}, Case{abr(96'000), "ABR 96"},
              Case{abr(224'000), "ABR 224"}, Case{vbr(0), "V0"}, Case{vbr(2), "V2"},
              Case{vbr(5.5), "V5.5"}, Case{vbr(9), "V9"}}) {
            CAPTURE(row.name);
            const EncoderSettings& settings = row.settings;
            const Pcm pcm = make_sound(Sound::mix, settings.sample_rate_hz, settings.channels, 15);
            const Encoded encoded = encode_in_sequence(pcm, settings);
            CHECK(laid_out(encoded, settings) == encoded.frames);
        }
    }

    TEST_CASE("a frame that will need the reservoir gets it from earlier frames") {
        const StreamShape shape = shape_of(vbr(2));
        BitstreamAssembler assembler(shape, "3.100");
        int frames = 0;
        const auto count = [&frames](std::span<const std::byte> /*frame*/) -> Result<void> {
            ++frames;
            return {};
        };
        constexpr int largest_payload_bits = 8 * (1044 - 36);
        // "Silent" frames leave as little as possible, and then one frame needs the maximum.
        for (int i = 0; i < 30; ++i) {
            CodedFrame frame = frame_of(500, shape);
            frame.demand.silent = true;
            REQUIRE(assembler.add(std::move(frame), count));
        }
        REQUIRE(assembler.add(frame_of(largest_payload_bits + 4000, shape), count));
        REQUIRE(assembler.finish(count));
        CHECK(frames == 31);
        CHECK(assembler.bumped_frames() > 0);
    }

    TEST_CASE("a frame that cannot be placed is an error, not a frame without its data") {
        const StreamShape shape = shape_of(vbr(2));
        BitstreamAssembler assembler(shape, "3.100");
        const auto ignore = [](std::span<const std::byte> /*frame*/) -> Result<void> { return {}; };
        constexpr int more_than_fits_bits = 8 * (1044 - 36) + 8;
        REQUIRE(assembler.add(frame_of(more_than_fits_bits, shape), ignore));
        const Result<void> finished = assembler.finish(ignore);
        REQUIRE_FALSE(finished);
        CHECK(finished.error().code == ErrorCode::encoder_failed);
    }

    TEST_CASE("no encoder holds back more frames than computed") {
        int most = 0;
        for (const auto& [rate_hz, channels] : {std::pair{44'100, 2},
                                                {48'000, 1},
                                                {32'000, 2},
                                                {24'000, 2},
                                                {22'050, 2},
                                                {16'000, 1},
                                                {8'000, 2}}) {
            for (const EncoderSettings& kind : {vbr(0), vbr(4), vbr(9), abr(64'000)}) {
                EncoderSettings settings = kind;
                settings.sample_rate_hz = rate_hz;
                settings.channels = channels;
                CAPTURE(settings.sample_rate_hz);
                CAPTURE(settings.channels);
                Pcm pcm = make_sound(Sound::speech, rate_hz, channels, 12);
                // Audio that stops and starts, because silence fills no frame.
                for (auto& plane : pcm.planes) {
                    for (std::size_t i = 0; i < plane.size(); ++i) {
                        if (i / static_cast<std::size_t>(rate_hz) % 3 != 0) plane[i] = 0;
                    }
                }
                const Encoded encoded = encode_in_sequence(pcm, settings);
                CHECK(encoded.late_frames <= Reservoir(shape_of(settings)).late_frames());
                most = std::max(most, encoded.late_frames);
            }
        }
        // More than a frame or two; otherwise the test checks nothing.
        CHECK(most > 4);
    }
}

TEST_SUITE("segment plan") {
    TEST_CASE("short files are not cut") {
        CHECK_FALSE(plan_segments({.encoder = cbr(128'000), .samples = 14 * 44'100}).parallel);
        CHECK(plan_segments({.encoder = cbr(128'000), .samples = 16 * 44'100}).parallel);
        CHECK(plan_segments({.encoder = vbr(2)}).parallel);
    }

    TEST_CASE("at a constant bitrate lengths are multiples of the padding's period") {
        CHECK(padding_period(cbr(128'000)) == 49);
        CHECK(padding_period(cbr(128'000, 48'000)) == 1);
        CHECK(padding_period(cbr(160'000, 32'000)) == 1);
        CHECK(padding_period(cbr(64'000, 22'050)) == 49);
        for (const int workers : {1, 2, 3, 8, 32}) {
            for (const std::int64_t seconds : {16, 180, 3600, 36'000}) {
                const SegmentPlan plan = plan_segments(
                    {.encoder = cbr(128'000), .samples = seconds * 44'100, .workers = workers});
                CHECK(plan.frames % 49 == 0);
                CHECK(plan.alone_frames % 49 == 0);
                CHECK(plan.frames <= 2600 + 49);
            }
        }
    }

    TEST_CASE("at other rate controls, lengths depend only on the duration") {
        const SegmentPlan one =
            plan_segments({.encoder = vbr(2), .samples = 180 * 44'100, .workers = 1});
        const SegmentPlan many = plan_segments(
            {.encoder = vbr(2), .samples = 180 * 44'100, .workers = 16, .streaming = true});
        std::int64_t first = 0;
        int previous = one.frames;
        while (first < 6892) {
            const int length = one.length_at(first, true);
            CHECK(length == many.length_at(first, false));
            CHECK(length <= previous);
            CHECK(length >= 490);
            previous = length;
            first += length;
        }
    }

    TEST_CASE("a stream's first segment is short") {
        const SegmentPlan plan = plan_segments(
            {.encoder = cbr(128'000), .samples = 180 * 44'100, .workers = 2, .streaming = true});
        CHECK(plan.length_at(0, false) == 98);
        CHECK(plan.length_at(98, false) > 1000);
    }
}
