#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <vector>

#include "media/mp3/lame_library.h"
#include "media/mp3/state_hash.hpp"
#include "polymux/media/mp3/encoder.hpp"
#include "polymux/media/mp3/frame.hpp"
#include "processor_features.hpp"

namespace polymux::media::mp3 {

namespace {

// FFmpeg's factor for a -q:a value, before it truncates to an integer.
constexpr double quality_to_lambda = 118;
constexpr float full_scale = 32768.0F;

// LAME aborts the process if its assertions fail. NaN, infinite or far too loud samples make them
// fail, from about 100,000 times full scale (measured).
constexpr float loudest = 1000.0F;

bool is_usable(float sample) noexcept {
    return std::abs(sample) <= loudest;
}

float made_usable(float sample) noexcept {
    return std::isnan(sample) ? 0 : std::clamp(sample, -loudest, loudest);
}

Error encoder_error(std::string message) {
    return Error{.code = ErrorCode::encoder_failed, .message = std::move(message)};
}

const polymux_lame& choose_library() noexcept {
#ifdef POLYMUX_LAME_AVX2
    if (internal::has_avx2()) return polymux_lame_avx2;
#endif
    return polymux_lame_baseline;
}

/// The build of LAME that is fastest on this processor.
const polymux_lame& library() noexcept {
    static const polymux_lame& chosen = choose_library();
    return chosen;
}

struct LameDeleter {
    void operator()(lame_global_struct* encoder) const noexcept { library().destroy(encoder); }
};
using UniqueLame = std::unique_ptr<lame_global_struct, LameDeleter>;

polymux_lame_settings lame_settings(const EncoderSettings& settings) {
    polymux_lame_settings lame{.sample_rate_hz = settings.sample_rate_hz,
                               .channels = settings.channels,
                               .rate_control = polymux_lame_cbr,
                               .bitrate_kbps = settings.bitrate_bps / 1000,
                               .vbr_quality = 0,
                               .quality = -1};
    if (settings.preset == Preset::best) lame.quality = 4;
    if (settings.preset == Preset::fast) lame.quality = 7;
    if (settings.rate_control == RateControl::abr) lame.rate_control = polymux_lame_abr;
    if (settings.rate_control == RateControl::vbr) {
        const int lambda = static_cast<int>(settings.vbr_quality * quality_to_lambda);
        lame.rate_control = polymux_lame_vbr;
        lame.vbr_quality = static_cast<float>(lambda) / static_cast<float>(quality_to_lambda);
    }
    return lame;
}

UniqueLame create(const EncoderSettings& settings) {
    // LAME fills global tables during encoder setup, without a lock.
    static std::mutex setup;
    const polymux_lame_settings lame = lame_settings(settings);
    const std::lock_guard lock(setup);
    return UniqueLame(library().create(&lame));
}

class LameEncoder final : public Encoder {
public:
    LameEncoder(UniqueLame encoder, const EncoderSettings& settings)
        : encoder_(std::move(encoder)), settings_(settings) {}

    int frame_samples() const noexcept override { return library().frame_samples(encoder_.get()); }
    int delay_samples() const noexcept override { return library().delay_samples(encoder_.get()); }
    int lowpass_hz() const noexcept override { return library().lowpass_hz(encoder_.get()); }

    int tag_flags() const noexcept override { return library().tag_flags(encoder_.get()); }
    int noise_shaping() const noexcept override { return library().noise_shaping(encoder_.get()); }

    std::int64_t unusable_samples() const noexcept override { return unusable_samples_; }
    std::int64_t coded_frames() const noexcept override {
        return library().coded_frames(encoder_.get());
    }

    EncoderState state() const noexcept override {
        std::array<polymux_lame_part, polymux_lame_max_parts> parts{};
        const int count = library().state(encoder_.get(), parts.data());
        StateHasher hasher;
        for (const auto& part : std::span(parts).first(static_cast<std::size_t>(count))) {
            hasher.add({static_cast<const std::byte*>(part.data), part.bytes});
        }
        return {.hash = hasher.value(), .searches = searches()};
    }

    GainSearches searches() const noexcept override {
        GainSearches searches;
        for (std::size_t channel = 0; channel < searches.size(); ++channel) {
            const auto found = library().search(encoder_.get(), static_cast<int>(channel));
            if (found.gain == nullptr) break;
            searches[channel] = {.gain = *found.gain, .step = *found.step, .count = *found.count};
        }
        return searches;
    }

    void set_search(std::size_t channel, const GainSearch& search) noexcept override {
        const auto found = library().search(encoder_.get(), static_cast<int>(channel));
        *found.gain = search.gain;
        *found.step = search.step;
    }

    FrameDemand demand(std::int64_t number) const noexcept override {
        const polymux_lame_demand found =
            library().demand(encoder_.get(), static_cast<int>(number));
        FrameDemand demand{.needed_bits = found.needed_bits, .silent = found.silent != 0};
        for (std::size_t part = 0; part < demand.coded.size(); ++part) {
            demand.coded[part] = found.coded[part / 2][part % 2] != 0;
            demand.entropy[part] = found.pe[part / 2][part % 2];
        }
        return demand;
    }

    int limit_bits(const FrameDemand& demand, int level_bits) override {
        polymux_lame_demand asked{
            .needed_bits = demand.needed_bits, .silent = 0, .coded = {}, .pe = {}};
        for (std::size_t part = 0; part < demand.coded.size(); ++part) {
            asked.coded[part / 2][part % 2] = demand.coded[part] ? 1 : 0;
            asked.pe[part / 2][part % 2] = demand.entropy[part];
        }
        return library().limit_bits(encoder_.get(), &asked, level_bits);
    }

    Result<void> encode(const PcmBlock& block, const FrameCallback& on_frame) override {
        reserve(block.samples);
        has_samples_ |= block.samples > 0;
        return take(encode_block(block), on_frame);
    }

    Result<void> empty_reservoir(const FrameCallback& on_frame) override {
        reserve(0);
        return take(library().empty_reservoir(encoder_.get(), room(), room_bytes()), on_frame);
    }

    Result<void> flush(const FrameCallback& on_frame) override {
        // LAME would code a frame of silence, which ffmpeg does not.
        if (!has_samples_) return {};
        reserve(0);
        if (Result<void> taken =
                take(library().flush(encoder_.get(), room(), room_bytes()), on_frame);
            !taken) {
            return taken;
        }
        if (filled_ == 0) return {};
        return encoder_error("LAME ended with an incomplete frame of " + std::to_string(filled_) +
                             " bytes");
    }

private:
    // LAME's own bound for the bytes of one call, plus the part of a frame that still waits.
    void reserve(int samples) {
        constexpr std::size_t fixed_bytes = 7200;
        const std::size_t needed =
            filled_ + static_cast<std::size_t>(samples) * 5 / 4 + fixed_bytes;
        if (buffer_.size() < needed) buffer_.resize(needed);
    }
    unsigned char* room() noexcept { return buffer_.data() + filled_; }
    int room_bytes() const noexcept { return static_cast<int>(buffer_.size() - filled_); }

    int encode_block(const PcmBlock& block) {
        switch (settings_.sample_format) {
            case SampleFormat::s16:
                return library().encode_s16(encoder_.get(),
                                            static_cast<const short*>(block.planes[0]),
                                            static_cast<const short*>(block.planes[1]),
                                            block.samples, room(), room_bytes());
            case SampleFormat::s32:
                return library().encode_s32(
                    encoder_.get(), static_cast<const int*>(block.planes[0]),
                    static_cast<const int*>(block.planes[1]), block.samples, room(), room_bytes());
            case SampleFormat::f32:
                return encode_float(block);
        }
        return -1;
    }

    int encode_float(const PcmBlock& block) {
        const auto samples = static_cast<std::size_t>(block.samples);
        for (std::size_t channel = 0; channel < static_cast<std::size_t>(settings_.channels);
             ++channel) {
            const auto* input = static_cast<const float*>(block.planes[channel]);
            scaled_[channel].resize(samples);
            std::transform(input, input + samples, scaled_[channel].begin(), [this](float sample) {
                if (!is_usable(sample)) {
                    ++unusable_samples_;
                    sample = made_usable(sample);
                }
                return sample * full_scale;
            });
        }
        return library().encode_f32(encoder_.get(), scaled_[0].data(), scaled_[1].data(),
                                    block.samples, room(), room_bytes());
    }

    Result<void> take(int count, const FrameCallback& on_frame) {
        if (count < 0) return encoder_error("LAME failed with code " + std::to_string(count));
        filled_ += static_cast<std::size_t>(count);
        const std::span<const std::byte> bytes = std::as_bytes(std::span(buffer_)).first(filled_);
        std::size_t begin = 0;
        while (filled_ - begin >= 4) {
            const std::optional<FrameHeader> header = parse_header(bytes.subspan(begin));
            if (!header) return encoder_error("LAME produced bytes that are not an MP3 frame");
            const auto frame_bytes = static_cast<std::size_t>(header->frame_bytes);
            if (filled_ - begin < frame_bytes) break;
            if (Result<void> given = on_frame(bytes.subspan(begin, frame_bytes)); !given)
                return given;
            begin += frame_bytes;
        }
        std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin),
                  buffer_.begin() + static_cast<std::ptrdiff_t>(filled_), buffer_.begin());
        filled_ -= begin;
        return {};
    }

    UniqueLame encoder_;
    EncoderSettings settings_;
    std::vector<unsigned char> buffer_;
    std::size_t filled_ = 0;
    bool has_samples_ = false;
    std::array<std::vector<float>, 2> scaled_;
    std::int64_t unusable_samples_ = 0;
};

}  // namespace

Result<std::unique_ptr<Encoder>> create_lame_encoder(const EncoderSettings& settings) {
    UniqueLame encoder = create(settings);
    if (!encoder) {
        return encoder_error("LAME does not support " + std::to_string(settings.channels) +
                             " channels at " + std::to_string(settings.sample_rate_hz) +
                             " Hz with these settings");
    }
    return std::unique_ptr<Encoder>(new LameEncoder(std::move(encoder), settings));
}

std::string lame_instructions() {
    return &library() == &polymux_lame_baseline ? "baseline" : "AVX2";
}

std::string lame_version() {
    return std::string("LAME ") + library().version();
}

}  // namespace polymux::media::mp3
