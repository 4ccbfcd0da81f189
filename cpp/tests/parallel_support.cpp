#include "parallel_support.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>

#include "support.hpp"

namespace polymux::testing {

using namespace polymux::media;
using namespace polymux::media::mp3;

namespace {

constexpr double two_pi = 2 * std::numbers::pi;

class Generator {
public:
    double sample(Sound sound, int channel, double time_s) {
        switch (sound) {
            case Sound::music:
                return music(channel, time_s);
            case Sound::speech:
                return speech(time_s);
            case Sound::drums:
                return 0.3 * music(channel, time_s) + drum(time_s);
            case Sound::tone:
                return 0.5 * std::sin(two_pi * 440 * time_s);
            case Sound::silence:
                return 0;
            case Sound::faint_noise:
                return 0.001 * noise();
            case Sound::loud_noise:
                return 0.7 * noise();
            case Sound::bursts:
                return burst(time_s);
            case Sound::mix:
                return mix(channel, time_s);
        }
        return 0;
    }

private:
    double noise() { return noise_(random_); }

    double music(int channel, double time_s) {
        const double note_hz = 110 * std::exp2(std::floor(std::fmod(time_s * 2, 12)) / 12);
        const double lead_hz = 880 * std::exp2(std::floor(std::fmod(time_s * 5, 7)) / 12);
        const double beat = std::exp(-12 * std::fmod(time_s + 0.1 * channel, 0.5));
        return 0.3 * std::sin(two_pi * note_hz * time_s) +
               0.15 * std::sin(two_pi * (lead_hz + 2 * channel) * time_s) + 0.2 * beat * noise();
    }

    double speech(double time_s) {
        const double syllable = std::max(0.0, std::sin(two_pi * 3.1 * time_s));
        const double pause = std::fmod(time_s, 4) < 3 ? 1 : 0.002;
        double voice = 0;
        for (const double harmonic : {1.0, 2.0, 3.0, 5.0, 8.0}) {
            voice += std::sin(two_pi * harmonic * 130 * time_s) / harmonic;
        }
        return pause * syllable * (0.25 * voice + 0.05 * noise());
    }

    double drum(double time_s) { return 0.9 * std::exp(-25 * std::fmod(time_s, 0.21)) * noise(); }

    // Another loudness, from -80 dB on, about every two frames.
    double burst(double time_s) {
        const double step = std::floor(time_s / 0.047);
        return std::pow(10.0, -4 * std::fmod(step * 0.618, 1.0)) *
               (noise() + std::sin(9000 * time_s)) / 2;
    }

    // All sounds in turn, so the state that an encoder must keep changes all the time.
    double mix(int channel, double time_s) {
        constexpr std::array parts = {Sound::music,  Sound::silence,     Sound::drums,
                                      Sound::speech, Sound::faint_noise, Sound::tone};
        const auto part = static_cast<std::size_t>(time_s / 2.3) % parts.size();
        return sample(parts[part], channel, time_s);
    }

    std::minstd_rand random_{1};
    std::uniform_real_distribution<double> noise_{-1, 1};
};

PcmBlock block_of(const Pcm& pcm, SampleFormat format, int begin, int samples) {
    PcmBlock block{.planes = {}, .samples = std::min(samples, pcm.samples() - begin)};
    for (std::size_t channel = 0; channel < pcm.planes.size(); ++channel) {
        switch (format) {
            case SampleFormat::s16:
                block.planes[channel] = pcm.planes[channel].data() + begin;
                break;
            case SampleFormat::s32:
                block.planes[channel] = pcm.planes_s32[channel].data() + begin;
                break;
            case SampleFormat::f32:
                block.planes[channel] = pcm.planes_f32[channel].data() + begin;
                break;
        }
    }
    return block;
}

}  // namespace

Threads::Threads(int count) {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
}

Threads::~Threads() {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
    arrived_.notify_all();
}

void Threads::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        arrived_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
        if (tasks_.empty()) return;
        const auto task = std::move(tasks_.front());
        tasks_.pop_front();
        ++busy_;
        lock.unlock();
        task();
        lock.lock();
        --busy_;
    }
}

HelperPool Threads::helper_pool() {
    return {.spare =
                [this] {
                    const std::scoped_lock lock(mutex_);
                    return static_cast<int>(threads_.size()) - busy_ -
                           static_cast<int>(tasks_.size());
                },
            .submit =
                [this](std::function<void()> task) {
                    const std::scoped_lock lock(mutex_);
                    tasks_.push_back(std::move(task));
                    arrived_.notify_one();
                }};
}

Pcm make_sound(Sound sound, int sample_rate_hz, int channels, double seconds) {
    Generator generator;
    Pcm pcm;
    pcm.planes.resize(static_cast<std::size_t>(channels));
    const auto samples = static_cast<int>(seconds * sample_rate_hz);
    for (int i = 0; i < samples; ++i) {
        for (int channel = 0; channel < channels; ++channel) {
            const double value =
                generator.sample(sound, channel, static_cast<double>(i) / sample_rate_hz);
            pcm.planes[static_cast<std::size_t>(channel)].push_back(
                static_cast<std::int16_t>(32767 * std::clamp(value, -1.0, 1.0)));
        }
    }
    return pcm;
}

EncoderSettings cbr(int bitrate_bps, int sample_rate_hz, int channels) {
    return {.sample_rate_hz = sample_rate_hz,
            .channels = channels,
            .rate_control = RateControl::cbr,
            .bitrate_bps = bitrate_bps};
}

EncoderSettings abr(int bitrate_bps) {
    return {.rate_control = RateControl::abr, .bitrate_bps = bitrate_bps};
}

EncoderSettings vbr(double quality) {
    return {.rate_control = RateControl::vbr, .vbr_quality = quality};
}

Encoded encode_in_sequence(const Pcm& pcm, const EncoderSettings& settings) {
    Encoded encoded;
    const auto encoder = create_lame_encoder(settings);
    REQUIRE(encoder);
    const auto keep = [&](std::span<const std::byte> frame) -> Result<void> {
        encoded.demands.push_back(
            (*encoder)->demand(static_cast<std::int64_t>(encoded.frames.size())));
        encoded.frames.push_back(as_text(frame));
        return {};
    };
    const int step = (*encoder)->frame_samples();
    for (int begin = 0; begin < pcm.samples(); begin += step) {
        REQUIRE((*encoder)->encode(block_of(pcm, settings.sample_format, begin, step), keep));
        const int given = begin / step + 1;
        encoded.late_frames =
            std::max(encoded.late_frames, given - static_cast<int>(encoded.frames.size()));
    }
    REQUIRE((*encoder)->flush(keep));
    return encoded;
}

Result<Encoded> try_in_parallel(const Pcm& pcm, const EncoderSettings& settings,
                                const ParallelSetup& setup) {
    Encoded encoded;
    Threads helpers(setup.threads - 1);
    int position = 0;
    ParallelJob job;
    job.encoder = settings;
    job.plan = plan_segments({.encoder = settings, .forced_frames = setup.segment_frames});
    job.threads = setup.threads;
    job.helper_pool = helpers.helper_pool();
    job.token = setup.token;
    job.before_step = setup.before_step;
    job.read = [&](int samples) -> Result<PcmBlock> {
        if (setup.before_read) {
            if (Result<void> allowed = setup.before_read(); !allowed) return allowed.error();
        }
        const PcmBlock block = block_of(pcm, settings.sample_format, position, samples);
        position += block.samples;
        return block;
    };
    job.write = [&](std::span<const std::byte> frame) -> Result<void> {
        if (setup.before_write) {
            if (Result<void> allowed = setup.before_write(); !allowed) return allowed;
        }
        encoded.frames.push_back(as_text(frame));
        return {};
    };
    job.on_progress = [&](std::int64_t samples) -> Result<void> {
        return setup.on_progress ? setup.on_progress(samples) : Result<void>();
    };
    auto encoder = create_lame_encoder(settings);
    REQUIRE(encoder);
    Result<ParallelSummary> summary = mp3::encode_in_parallel(job, std::move(*encoder));
    if (!summary) return summary.error();
    encoded.summary = *summary;
    return encoded;
}

Encoded encode_in_parallel(const Pcm& pcm, const EncoderSettings& settings,
                           const ParallelSetup& setup) {
    Result<Encoded> encoded = try_in_parallel(pcm, settings, setup);
    if (!encoded) FAIL(encoded.error().message);
    return std::move(*encoded);
}

std::size_t differing(const Encoded& one, const Encoded& other) {
    if (one.frames.size() != other.frames.size()) {
        return std::max(one.frames.size(), other.frames.size());
    }
    std::size_t count = 0;
    for (std::size_t i = 0; i < one.frames.size(); ++i) {
        if (one.frames[i] != other.frames[i]) ++count;
    }
    return count;
}

}  // namespace polymux::testing
