#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "parallel_support.hpp"

using namespace polymux;
using namespace polymux::media;
using namespace polymux::media::mp3;
using namespace polymux::testing;

namespace {

const Pcm& mix() {
    static const Pcm pcm = make_sound(Sound::mix, 44'100, 2, 14.7);
    return pcm;
}

/// Sleeps now and then, on any calling thread.
std::function<void()> delays(unsigned seed) {
    auto count = std::make_shared<std::atomic<unsigned>>(seed);
    return [count] {
        const unsigned value = (*count += 7919) * 2654435761U;
        if (value % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(value % 3000));
    };
}

Error stopped() {
    return Error{.code = ErrorCode::callback_failed, .message = "stopped by the test"};
}

}  // namespace

TEST_SUITE("parallel encoder") {
    TEST_CASE("at a constant bitrate every frame equals the sequential one, for any segments") {
        const EncoderSettings settings = cbr(128'000);
        const Encoded expected = encode_in_sequence(mix(), settings);
        for (const int threads : {1, 2, 3, 8}) {
            for (const int frames : {49, 98, 245}) {
                CAPTURE(threads);
                CAPTURE(frames);
                const Encoded found = encode_in_parallel(
                    mix(), settings, {.threads = threads, .segment_frames = frames});
                CHECK(differing(found, expected) == 0);
                CHECK(found.summary.samples == mix().samples());
                if (threads == 1) CHECK(found.summary.seams == 0);
            }
        }
    }

    TEST_CASE("delays in the workers change no byte") {
        for (const EncoderSettings& settings : {cbr(128'000), vbr(2), vbr(0), abr(128'000)}) {
            const Encoded expected =
                settings.rate_control == RateControl::cbr
                    ? encode_in_sequence(mix(), settings)
                    : encode_in_parallel(mix(), settings, {.threads = 1, .segment_frames = 150});
            for (unsigned seed = 1; seed <= 2; ++seed) {
                CAPTURE(seed);
                CAPTURE(static_cast<int>(settings.rate_control));
                const Encoded found = encode_in_parallel(
                    mix(), settings,
                    {.threads = 4, .segment_frames = 150, .before_step = delays(seed)});
                CHECK(differing(found, expected) == 0);
            }
        }
    }

    TEST_CASE("a segment that is split while the source is still read") {
        // Two segments are available at once, the others arrive slowly. One worker is slower than
        // the other, which takes half of the remaining work. Segments read later must keep their
        // place after it.
        const EncoderSettings settings = cbr(128'000);
        const Pcm pcm = make_sound(Sound::mix, 44'100, 2, 90.0);
        const Encoded expected = encode_in_sequence(pcm, settings);
        const std::thread::id reader = std::this_thread::get_id();
        constexpr int segments_read = 4;
        std::int64_t seams = 0;
        for (int attempt = 0; attempt < 5 && seams < segments_read; ++attempt) {
            std::atomic<std::thread::id> slow_worker = reader;
            std::atomic<int> slow_steps = 0;
            std::atomic<int> other_steps = 0;
            // One step for twenty of the others, at any machine load, until they have no more work.
            std::atomic<bool> others_are_done = false;
            const auto slow_step = [&] {
                std::thread::id nobody = reader;
                const auto here = std::this_thread::get_id();
                if (here != reader) slow_worker.compare_exchange_strong(nobody, here);
                if (slow_worker != here) {
                    ++other_steps;
                    return;
                }
                ++slow_steps;
                int seen_steps = other_steps;
                for (int waited_ms = 0; other_steps < 20 * slow_steps && !others_are_done;) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                    waited_ms = seen_steps == other_steps ? waited_ms + 1 : 0;
                    seen_steps = other_steps;
                    if (waited_ms == 1000) others_are_done = true;
                }
            };
            int reads = 0;
            const auto slow_read = [&reads]() -> Result<void> {
                constexpr int at_once = 120;
                if (++reads > at_once) std::this_thread::sleep_for(std::chrono::milliseconds(30));
                return {};
            };
            const Encoded found = encode_in_parallel(pcm, settings,
                                                     {.threads = 3,
                                                      .segment_frames = 882,
                                                      .before_step = slow_step,
                                                      .before_read = slow_read});
            CHECK(differing(found, expected) == 0);
            CHECK(found.summary.samples == pcm.samples());
            seams = found.summary.seams;
        }
        // One segment was split; otherwise the test checks nothing.
        CHECK(seams >= segments_read);
    }

    TEST_CASE("idle workers share the last segment") {
        const EncoderSettings settings = cbr(128'000);
        const Encoded expected = encode_in_sequence(mix(), settings);
        for (unsigned seed = 1; seed <= 6; ++seed) {
            CAPTURE(seed);
            const Encoded found = encode_in_parallel(
                mix(), settings,
                {.threads = 3, .segment_frames = 380, .before_step = delays(seed)});
            CHECK(differing(found, expected) == 0);
            // There are two segments, and the second one is a remnant.
            CHECK(found.summary.seams > 0);
        }
    }

    TEST_CASE("bitrates, rates and channels") {
        struct Case {
            int bitrate_bps;
            int sample_rate_hz;
            int channels;
        };
        for (const auto& [bitrate_bps, sample_rate_hz, channels] :
             {Case{320'000, 44'100, 2}, Case{64'000, 44'100, 1}, Case{192'000, 48'000, 2},
              Case{96'000, 32'000, 2}, Case{64'000, 22'050, 2}, Case{32'000, 24'000, 1},
              Case{24'000, 16'000, 1}, Case{16'000, 11'025, 1}, Case{8'000, 8'000, 1}}) {
            const EncoderSettings settings = cbr(bitrate_bps, sample_rate_hz, channels);
            CAPTURE(settings.bitrate_bps);
            CAPTURE(settings.sample_rate_hz);
            const Pcm pcm = make_sound(Sound::mix, sample_rate_hz, channels, 16);
            const Encoded found = encode_in_parallel(pcm, settings, {.segment_frames = 147});
            CHECK(differing(found, encode_in_sequence(pcm, settings)) == 0);
            if (sample_rate_hz > 8000) CHECK(found.summary.seams > 0);
        }
    }

    TEST_CASE("audio that makes agreement difficult") {
        for (const Sound sound : {Sound::silence, Sound::tone, Sound::faint_noise,
                                  Sound::loud_noise, Sound::speech, Sound::drums}) {
            const Pcm pcm = make_sound(sound, 44'100, 2, 9);
            for (const EncoderSettings& settings : {cbr(128'000), cbr(48'000), cbr(320'000)}) {
                CAPTURE(static_cast<int>(sound));
                CAPTURE(settings.bitrate_bps);
                const Encoded found = encode_in_parallel(pcm, settings, {.segment_frames = 147});
                CHECK(differing(found, encode_in_sequence(pcm, settings)) == 0);
            }
        }
    }

    // LAME then no longer searches the gain of the second channel, so encoders that began after the
    // music know nothing of what it found there.
    TEST_CASE("channels that become equal") {
        Pcm pcm = make_sound(Sound::tone, 44'100, 2, 60);
        pcm.planes[1] = pcm.planes[0];
        const Pcm music = make_sound(Sound::music, 44'100, 2, 6);
        for (std::size_t i = 0; i < 2; ++i) {
            std::ranges::copy(music.planes[i], pcm.planes[i].begin());
            // Here it searches with what it found.
            std::ranges::copy(music.planes[i], pcm.planes[i].end() - music.samples());
        }
        const EncoderSettings settings = cbr(128'000);
        const Encoded expected = encode_in_sequence(pcm, settings);
        for (const int threads : {2, 3, 8}) {
            for (unsigned seed = 1; seed <= 4; ++seed) {
                CAPTURE(threads);
                CAPTURE(seed);
                const Encoded found = encode_in_parallel(
                    pcm, settings,
                    {.threads = threads, .segment_frames = 294, .before_step = delays(seed)});
                CHECK(differing(found, expected) == 0);
                CHECK(found.summary.seams > 0);
            }
        }
    }

    TEST_CASE("at other rate controls every frame equals the sequential one, or is reported") {
        for (const Sound sound : {Sound::silence, Sound::tone, Sound::faint_noise,
                                  Sound::loud_noise, Sound::speech, Sound::drums, Sound::mix}) {
            const Pcm pcm = make_sound(sound, 44'100, 2, 14);
            for (const EncoderSettings& settings : {vbr(0), vbr(2), abr(128'000)}) {
                CAPTURE(static_cast<int>(sound));
                CAPTURE(settings.vbr_quality);
                const Encoded found = encode_in_parallel(pcm, settings, {.segment_frames = 245});
                const Encoded expected = encode_in_sequence(pcm, settings);
                if (found.summary.inexact_frames == 0) CHECK(differing(found, expected) == 0);
            }
        }
    }

    TEST_CASE("frames that depend on the reservoir's level are encoded again") {
        const Pcm pcm = make_sound(Sound::drums, 44'100, 2, 30);
        int repairs = 0;
        for (const double quality : {1.0, 2.0}) {
            CAPTURE(quality);
            const EncoderSettings settings = vbr(quality);
            const Encoded alone =
                encode_in_parallel(pcm, settings, {.threads = 1, .segment_frames = 200});
            const Encoded found =
                encode_in_parallel(pcm, settings, {.threads = 3, .segment_frames = 200});
            repairs += found.summary.repairs;
            CHECK(differing(alone, found) == 0);
            CHECK(found.summary.inexact_frames == 0);
            CHECK(differing(found, encode_in_sequence(pcm, settings)) == 0);
        }
        CHECK(repairs > 0);
    }

    TEST_CASE("odd lengths at the end") {
        const EncoderSettings settings = cbr(128'000);
        constexpr int segment_samples = 98 * 1152;
        for (const int samples : {segment_samples - 1, segment_samples, segment_samples + 1,
                                  3 * segment_samples, 3 * segment_samples + 1, 1, 1151, 1153}) {
            CAPTURE(samples);
            Pcm pcm = mix();
            for (auto& plane : pcm.planes) plane.resize(static_cast<std::size_t>(samples));
            const Encoded found = encode_in_parallel(pcm, settings, {.segment_frames = 98});
            CHECK(differing(found, encode_in_sequence(pcm, settings)) == 0);
        }
    }

    TEST_CASE("at other rate controls threads change nothing") {
        const Pcm pcm = make_sound(Sound::drums, 44'100, 2, 16);
        for (const double quality : {0.0, 2.0}) {
            CAPTURE(quality);
            const EncoderSettings settings = vbr(quality);
            const Encoded alone =
                encode_in_parallel(pcm, settings, {.threads = 1, .segment_frames = 200});
            for (const int threads : {2, 8}) {
                const Encoded found =
                    encode_in_parallel(pcm, settings, {.threads = threads, .segment_frames = 200});
                CHECK(differing(found, alone) == 0);
            }
        }
    }

    TEST_CASE("cancellation ends it at any point") {
        for (const int step : {1, 2, 10, 30, 60, 90}) {
            CAPTURE(step);
            const CancelToken token;
            std::atomic<int> steps = 0;
            const auto found = try_in_parallel(mix(), cbr(128'000),
                                               {.before_step =
                                                    [&] {
                                                        if (++steps == step) token.cancel();
                                                    },
                                                .token = token});
            REQUIRE_FALSE(found);
            CHECK(found.error().code == ErrorCode::cancelled);
            CHECK(steps < step + 40);
        }
    }

    TEST_CASE("errors of source, sink and progress end it") {
        for (const int call : {1, 2, 9, 30}) {
            CAPTURE(call);
            int calls = 0;
            const auto fail_at = [&]() -> Result<void> {
                if (++calls == call) return stopped();
                return {};
            };
            const auto by_source = try_in_parallel(mix(), vbr(4), {.before_read = fail_at});
            calls = 0;
            const auto by_sink = try_in_parallel(mix(), vbr(4), {.before_write = fail_at});
            calls = 0;
            const auto by_progress = try_in_parallel(
                mix(), vbr(4), {.on_progress = [&](std::int64_t) { return fail_at(); }});
            for (const auto* found : {&by_source, &by_sink, &by_progress}) {
                REQUIRE_FALSE(*found);
                CHECK(found->error().code == ErrorCode::callback_failed);
            }
        }
    }

    TEST_CASE("progress increases to the end") {
        std::int64_t last = 0;
        const auto watch = [&last](std::int64_t samples) -> Result<void> {
            CHECK(samples >= last);
            last = samples;
            return {};
        };
        const Encoded found = encode_in_parallel(mix(), cbr(128'000), {.on_progress = watch});
        CHECK(last <= found.summary.samples);
        CHECK(last > found.summary.samples / 2);
    }
}
