// Random conversions, each with one encoder and with several. Every frame must be equal, or the
// difference reported. The environment variables POLYMUX_MP3_CASES and POLYMUX_MP3_SEED set the
// number of conversions (default: 300) and the seed (default: a fresh one, which is printed), and
// POLYMUX_MP3_PROGRAM_CASES that of comparisons with the ffmpeg program (default: 20).
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numbers>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "media/mp3/lame_library.h"
#include "media/mp3/segment_plan.hpp"
#include "parallel_support.hpp"
#include "polymux/media/mp3/frame.hpp"
#include "support.hpp"

using namespace polymux;
using namespace polymux::media;
using namespace polymux::media::mp3;
using namespace polymux::testing;

namespace {

using Random = std::mt19937_64;

double between(Random& random, double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
}

int one_of(Random& random, int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
}

bool chance(Random& random, double probability) {
    return between(random, 0, 1) < probability;
}

enum class Kind : std::uint8_t {
    silence,
    clicks,
    tone,
    noise,
    chord,
    transients,
    sweep,
    square,
    offset,
    last = offset
};

/// One channel's signal for a while, in full scale.
class Signal {
public:
    Signal(Random& random, int sample_rate_hz, int frame_samples)
        : kind_(static_cast<Kind>(one_of(random, 0, static_cast<int>(Kind::last)))),
          noise_(random()) {
        // From below the threshold of hearing to clipping.
        loudness_ = std::pow(10.0, between(random, -5.2, 0.02));
        fade_ = chance(random, 0.25) ? between(random, -12, 12) / sample_rate_hz : 0;
        // A tone or a click may repeat exactly with the frames.
        period_ = chance(random, 0.3) ? frame_samples / std::exp2(one_of(random, 0, 5))
                                      : sample_rate_hz / between(random, 40, 6000);
        slow_period_ = between(random, 0.02, 0.7) * sample_rate_hz;
        for (double& ratio : ratios_) ratio = between(random, 1, 12);
    }

    double next() {
        const double value = std::clamp(loudness_ * shape(), -1.0, 1.0);
        loudness_ = std::min(loudness_ * (1 + fade_), 1.5);
        ++position_;
        return value;
    }

private:
    double noise() {
        noise_ = noise_ * 6364136223846793005U + 1442695040888963407U;
        return static_cast<double>(static_cast<std::int32_t>(noise_ >> 32)) / 2147483648.0;
    }
    double wave(double ratio) const {
        return std::sin(2 * std::numbers::pi * ratio * static_cast<double>(position_) / period_);
    }
    double shape() {
        const double slow = std::fmod(static_cast<double>(position_), slow_period_);
        switch (kind_) {
            case Kind::silence:
                return 0;
            case Kind::clicks:
                return slow < 1 ? 1 : 0;
            case Kind::tone:
                return wave(1);
            case Kind::noise:
                return noise();
            case Kind::chord:
                return (wave(1) + wave(ratios_[0]) + wave(ratios_[1])) / 3 + 0.02 * noise();
            case Kind::transients:
                return std::exp(-slow / 300) * noise() + 0.05 * wave(1);
            case Kind::sweep:
                return std::sin(slow * slow / slow_period_);
            case Kind::square:
                return wave(1) > 0 ? 1 : -1;
            case Kind::offset:
                return 0.7 + 0.001 * noise();
        }
        return 0;
    }

    Kind kind_;
    std::uint64_t noise_;
    double loudness_ = 0;
    double fade_ = 0;
    double period_ = 1;
    double slow_period_ = 1;
    std::array<double, 2> ratios_{};
    std::int64_t position_ = 0;
};

enum class Stereo : std::uint8_t {
    different,
    equal,
    opposite,
    left_only,
    nearly_equal,
    last = nearly_equal
};

double second_channel(Stereo stereo, double value, double other, int sample) {
    switch (stereo) {
        case Stereo::different:
            return other;
        case Stereo::equal:
            return value;
        case Stereo::opposite:
            return -value;
        case Stereo::left_only:
            return 0;
        case Stereo::nearly_equal:
            return sample % 97 == 0 ? value - 1 / 32768.0 : value;
    }
    return 0;
}

/// Pieces of 50 ms to 4 s, each with another signal and another relation of the channels.
std::vector<std::vector<double>> random_sound(Random& random, const EncoderSettings& settings) {
    const int frame_samples = shape_of(settings).frame_samples();
    // The fewer frames a second has, the longer: most segments then have room for a seam.
    const double min_s = settings.sample_rate_hz >= 32'000 ? 4 : 10;
    const auto samples = static_cast<std::size_t>(
        between(random, min_s, between(random, min_s, 20)) * settings.sample_rate_hz);
    std::vector<std::vector<double>> planes(static_cast<std::size_t>(settings.channels));
    // Some sounds have few pieces: a state then has much time to be forgotten, or to stay.
    const double longest_s = chance(random, 0.3) ? 4 : 0.7;
    while (planes[0].size() < samples) {
        const auto length =
            static_cast<int>(between(random, 0.05, longest_s) * settings.sample_rate_hz);
        const auto stereo = static_cast<Stereo>(one_of(random, 0, static_cast<int>(Stereo::last)));
        Signal left(random, settings.sample_rate_hz, frame_samples);
        Signal right(random, settings.sample_rate_hz, frame_samples);
        for (int i = 0; i < length; ++i) {
            planes[0].push_back(left.next());
            if (settings.channels == 1) continue;
            planes[1].push_back(second_channel(stereo, planes[0].back(), right.next(), i));
        }
    }
    return planes;
}

/// In the encoder's format.
Pcm as_pcm(const std::vector<std::vector<double>>& planes, SampleFormat format) {
    Pcm pcm;
    const auto convert = [](const std::vector<double>& plane, double scale, auto& all) {
        using Sample = typename std::remove_reference_t<decltype(all)>::value_type::value_type;
        auto& converted = all.emplace_back();
        converted.reserve(plane.size());
        for (const double value : plane) {
            const double scaled = scale * value;
            if constexpr (std::is_floating_point_v<Sample>) {
                converted.push_back(static_cast<Sample>(scaled));
            } else {
                converted.push_back(static_cast<Sample>(std::lround(scaled)));
            }
        }
    };
    for (const auto& plane : planes) {
        convert(plane, 32767, pcm.planes);
        if (format == SampleFormat::s32) convert(plane, 2147483647, pcm.planes_s32);
        // Floats may exceed full scale.
        if (format == SampleFormat::f32) convert(plane, 1.25, pcm.planes_f32);
    }
    return pcm;
}

EncoderSettings random_settings(Random& random) {
    constexpr std::array rates_hz = {48'000, 44'100, 32'000, 24'000, 22'050,
                                     16'000, 12'000, 11'025, 8'000};
    EncoderSettings settings;
    settings.sample_rate_hz = rates_hz[static_cast<std::size_t>(one_of(random, 0, 8))];
    settings.channels = one_of(random, 1, 2);
    const auto allowed = bitrates(shape_of(settings).version);
    const int highest = settings.sample_rate_hz < 16'000 ? 7 : static_cast<int>(allowed.size()) - 1;
    settings.bitrate_bps = allowed[static_cast<std::size_t>(one_of(random, 0, highest))];
    const int kind = one_of(random, 0, 9);
    settings.rate_control = kind < 6   ? RateControl::cbr
                            : kind < 8 ? RateControl::abr
                                       : RateControl::vbr;
    settings.vbr_quality = one_of(random, 0, 90) / 10.0;
    constexpr std::array presets = {Preset::ffmpeg, Preset::ffmpeg, Preset::best, Preset::fast};
    settings.preset = presets[static_cast<std::size_t>(one_of(random, 0, 3))];
    settings.sample_format = static_cast<SampleFormat>(one_of(random, 0, 2));
    return settings;
}

/// Two to six segments, most of them longer than the usual way to equal states.
int random_length(Random& random, const EncoderSettings& settings, int frames) {
    constexpr int usual_overlap = 60;
    const int period = padding_period(settings);
    const int length = std::max(frames / one_of(random, 2, 6), std::min(usual_overlap, frames / 2));
    return std::max(length / period, 1) * period;
}

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
    const char* value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? otherwise : std::stoull(value);
}

struct Conversion {
    EncoderSettings settings;
    Pcm pcm;
    ParallelSetup setup;
};

Conversion random_conversion(std::uint64_t seed) {
    Random random(seed);
    Conversion conversion;
    conversion.settings = random_settings(random);
    const SampleFormat format = conversion.settings.sample_format;
    conversion.pcm = as_pcm(random_sound(random, conversion.settings), format);
    const int frames = conversion.pcm.samples() / shape_of(conversion.settings).frame_samples();
    conversion.setup = {.threads = one_of(random, 2, 8),
                        .segment_frames = random_length(random, conversion.settings, frames)};
    return conversion;
}

std::uint64_t first_seed() {
    const std::uint64_t seed = number_from("POLYMUX_MP3_SEED", std::random_device{}());
    MESSAGE("POLYMUX_MP3_SEED=" << seed);
    return seed;
}

template <typename Sample>
std::string interleaved(const std::vector<std::vector<Sample>>& planes) {
    std::vector<Sample> samples;
    for (std::size_t i = 0; i < planes[0].size(); ++i) {
        for (const auto& plane : planes) samples.push_back(plane[i]);
    }
    return as_text(std::as_bytes(std::span(samples)));
}

std::vector<std::string> frames_of_ffmpeg(const Conversion& conversion,
                                          const TemporaryFolder& folder) {
    const EncoderSettings& settings = conversion.settings;
    const Pcm& pcm = conversion.pcm;
    std::string format;
    std::string samples;
    switch (settings.sample_format) {
        case SampleFormat::s16:
            format = "s16le";
            samples = interleaved(pcm.planes);
            break;
        case SampleFormat::s32:
            format = "s32le";
            samples = interleaved(pcm.planes_s32);
            break;
        case SampleFormat::f32:
            format = "f32le";
            samples = interleaved(pcm.planes_f32);
            break;
    }
    write_file(folder.file("sound"), samples);
    std::vector<std::string> arguments = {"-f",  format,
                                          "-ar", std::to_string(settings.sample_rate_hz),
                                          "-ac", std::to_string(settings.channels),
                                          "-i",  folder.file("sound")};
    if (settings.rate_control == RateControl::vbr) {
        arguments.insert(arguments.end(), {"-q:a", std::to_string(settings.vbr_quality)});
    } else {
        arguments.insert(arguments.end(), {"-b:a", std::to_string(settings.bitrate_bps)});
    }
    if (settings.rate_control == RateControl::abr) {
        arguments.insert(arguments.end(), {"-abr", "1"});
    }
    if (settings.preset != Preset::ffmpeg) {
        const char* level = settings.preset == Preset::best ? "4" : "7";
        arguments.insert(arguments.end(), {"-compression_level", level});
    }
    arguments.insert(arguments.end(), {"-write_xing", "0", "-id3v2_version", "0"});
    const std::string path = folder.file("ffmpeg.mp3");
    make_media(path, arguments);
    const std::string content = read_file(path);
    std::vector<std::string> frames;
    for (std::size_t begin = 0; begin < content.size();) {
        const auto header = parse_header(as_bytes(content).subspan(begin));
        REQUIRE(header);
        frames.push_back(content.substr(begin, static_cast<std::size_t>(header->frame_bytes)));
        begin += frames.back().size();
    }
    return frames;
}

std::string encoded_by(const polymux_lame& build, const Conversion& conversion) {
    const EncoderSettings& settings = conversion.settings;
    polymux_lame_settings lame{.sample_rate_hz = settings.sample_rate_hz,
                               .channels = settings.channels,
                               .rate_control = polymux_lame_cbr,
                               .bitrate_kbps = settings.bitrate_bps / 1000,
                               .vbr_quality = static_cast<float>(settings.vbr_quality),
                               .quality = settings.preset == Preset::fast ? 7 : 4};
    if (settings.rate_control == RateControl::abr) lame.rate_control = polymux_lame_abr;
    if (settings.rate_control == RateControl::vbr) lame.rate_control = polymux_lame_vbr;
    const std::unique_ptr<lame_global_struct, int (*)(lame_global_struct*)> encoder(
        build.create(&lame), build.destroy);
    REQUIRE(encoder);
    std::string bytes;
    std::vector<unsigned char> room(1U << 16U);
    const auto take = [&](int count) {
        REQUIRE(count >= 0);
        bytes.append(room.begin(), room.begin() + count);
    };
    const auto& left = conversion.pcm.planes.front();
    const auto& right = conversion.pcm.planes.back();
    const std::size_t step = 1152;
    for (std::size_t begin = 0; begin < left.size(); begin += step) {
        take(build.encode_s16(encoder.get(), left.data() + begin, right.data() + begin,
                              static_cast<int>(std::min(step, left.size() - begin)), room.data(),
                              static_cast<int>(room.size())));
    }
    take(build.flush(encoder.get(), room.data(), static_cast<int>(room.size())));
    return bytes;
}

struct Counts {
    int files = 0;
    int parallel = 0;
    int reported = 0;
    int seams = 0;
    int absorbed = 0;
    int repairs = 0;
};

}  // namespace

TEST_CASE("random conversions equal those of one encoder") {
    const std::uint64_t count = number_from("POLYMUX_MP3_CASES", 300);
    const std::uint64_t seed = first_seed();
    std::array<Counts, 3> by_mode;
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto [settings, pcm, setup] = random_conversion(seed + i);
        CAPTURE(seed + i);
        const Encoded expected = encode_in_sequence(pcm, settings);
        const Encoded found = encode_in_parallel(pcm, settings, setup);
        const auto different = differing(found, expected);
        const bool reported = found.summary.inexact_frames > 0;
        if (settings.rate_control == RateControl::cbr || !reported) CHECK(different == 0);
        Counts& counts = by_mode[static_cast<std::size_t>(settings.rate_control)];
        ++counts.files;
        counts.parallel += found.summary.seams > 0 ? 1 : 0;
        counts.reported += reported ? 1 : 0;
        counts.seams += found.summary.seams;
        counts.absorbed += found.summary.absorbed_segments;
        counts.repairs += found.summary.repairs;
    }
    const std::array<std::string, 3> names = {"CBR", "ABR", "VBR"};
    for (std::size_t mode = 0; mode < names.size(); ++mode) {
        const Counts& counts = by_mode[mode];
        MESSAGE(names[mode] << ": " << counts.files << " sounds, " << counts.parallel
                            << " in parallel, " << counts.seams << " boundaries, "
                            << counts.absorbed << " segments absorbed, " << counts.repairs
                            << " repairs, " << counts.reported << " reported as not identical");
    }
}

#ifdef POLYMUX_LAME_AVX2
TEST_CASE("both builds of LAME code the same") {
    if (!__builtin_cpu_supports("avx2")) {
        MESSAGE("skipped: this processor has no AVX2");
        return;
    }
    const std::uint64_t seed = first_seed();
    for (std::uint64_t i = 0; i < 60; ++i) {
        const Conversion conversion = random_conversion(seed + i);
        CAPTURE(seed + i);
        CHECK(encoded_by(polymux_lame_avx2, conversion) ==
              encoded_by(polymux_lame_baseline, conversion));
    }
}
#endif

TEST_CASE("random conversions equal those of the ffmpeg program") {
    const std::uint64_t count = number_from("POLYMUX_MP3_PROGRAM_CASES", 20);
    const std::uint64_t seed = first_seed();
    const TemporaryFolder folder;
    std::uint64_t compared = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        const Conversion conversion = random_conversion(seed + i);
        CAPTURE(seed + i);
        const Encoded found =
            encode_in_parallel(conversion.pcm, conversion.settings, conversion.setup);
        if (found.summary.inexact_frames > 0) continue;
        CHECK(found.frames == frames_of_ffmpeg(conversion, folder));
        ++compared;
    }
    MESSAGE(compared << " of " << count << " conversions compared; the others were reported");
    CHECK(compared * 2 > count);
}
