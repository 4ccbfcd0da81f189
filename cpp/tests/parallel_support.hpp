// Audio, a helper_pool of threads, and conversions with and without it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "media/mp3/parallel_encoder.hpp"

namespace polymux::testing {

/// Threads that only help.
class Threads {
public:
    explicit Threads(int count);
    ~Threads();
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;
    [[nodiscard]] media::mp3::HelperPool helper_pool();

private:
    void work();

    std::mutex mutex_;
    std::condition_variable arrived_;
    std::deque<std::function<void()>> tasks_;
    int busy_ = 0;
    bool ending_ = false;
    std::vector<std::jthread> threads_;
};

enum class Sound : std::uint8_t {
    music,
    speech,
    drums,
    tone,
    silence,
    faint_noise,
    loud_noise,
    bursts,
    mix
};

/// planes[channel][sample]. An encoder for another format gets its own planes.
struct Pcm {
    std::vector<std::vector<std::int16_t>> planes;
    std::vector<std::vector<std::int32_t>> planes_s32 = {};
    std::vector<std::vector<float>> planes_f32 = {};
    [[nodiscard]] int samples() const { return static_cast<int>(planes.front().size()); }
};

[[nodiscard]] Pcm make_sound(Sound sound, int sample_rate_hz, int channels, double seconds);

struct Encoded {
    std::vector<std::string> frames;
    int late_frames = 0;  ///< Maximum of frames held back; only for a sequence.
    std::vector<media::mp3::FrameDemand> demands;  ///< Only for a sequence.
    media::mp3::ParallelSummary summary;
};

[[nodiscard]] media::mp3::EncoderSettings cbr(int bitrate_bps, int sample_rate_hz = 44'100,
                                              int channels = 2);
[[nodiscard]] media::mp3::EncoderSettings abr(int bitrate_bps);
[[nodiscard]] media::mp3::EncoderSettings vbr(double quality);

/// By one encoder that receives everything.
[[nodiscard]] Encoded encode_in_sequence(const Pcm& pcm,
                                         const media::mp3::EncoderSettings& settings);

struct ParallelSetup {
    int threads = 3;  ///< Includes the calling thread.
    int segment_frames = 100;
    std::function<void()> before_step = {};
    std::function<Result<void>(std::int64_t)> on_progress = {};
    std::function<Result<void>()> before_read = {};
    std::function<Result<void>()> before_write = {};
    CancelToken token = {};
};

[[nodiscard]] Result<Encoded> try_in_parallel(const Pcm& pcm,
                                              const media::mp3::EncoderSettings& settings,
                                              const ParallelSetup& setup = {});

/// Must not fail.
[[nodiscard]] Encoded encode_in_parallel(const Pcm& pcm,
                                         const media::mp3::EncoderSettings& settings,
                                         const ParallelSetup& setup = {});

/// Number of different frames; all of them if the counts differ.
[[nodiscard]] std::size_t differing(const Encoded& one, const Encoded& other);

}  // namespace polymux::testing
