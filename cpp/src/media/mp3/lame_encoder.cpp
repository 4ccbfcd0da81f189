#include <lame/lame.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <vector>

#include "polymux/media/mp3/encoder.hpp"
#include "polymux/media/mp3/frame.hpp"

namespace polymux::media::mp3 {

namespace {

struct LameDeleter {
    void operator()(lame_global_flags* encoder) const noexcept { lame_close(encoder); }
};
using UniqueLame = std::unique_ptr<lame_global_flags, LameDeleter>;

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

void be_silent(const char* /*format*/, va_list /*arguments*/) {}

void set_rate_control(lame_global_flags* encoder, const EncoderSettings& settings) {
    switch (settings.rate_control) {
        case RateControl::cbr:
            lame_set_brate(encoder, settings.bitrate_bps / 1000);
            break;
        case RateControl::abr:
            lame_set_VBR(encoder, vbr_abr);
            lame_set_VBR_mean_bitrate_kbps(encoder, settings.bitrate_bps / 1000);
            break;
        case RateControl::vbr: {
            const int lambda = static_cast<int>(settings.vbr_quality * quality_to_lambda);
            lame_set_VBR(encoder, vbr_default);
            lame_set_VBR_quality(
                encoder, static_cast<float>(lambda) / static_cast<float>(quality_to_lambda));
            break;
        }
    }
}

UniqueLame create(const EncoderSettings& settings) {
    // LAME fills global tables during encoder setup, without a lock.
    static std::mutex setup;
    const std::lock_guard lock(setup);
    UniqueLame encoder(lame_init());
    if (!encoder) return nullptr;
    lame_set_errorf(encoder.get(), be_silent);
    lame_set_msgf(encoder.get(), be_silent);
    lame_set_debugf(encoder.get(), be_silent);
    lame_set_num_channels(encoder.get(), settings.channels);
    lame_set_mode(encoder.get(), settings.channels > 1 ? JOINT_STEREO : MONO);
    lame_set_in_samplerate(encoder.get(), settings.sample_rate_hz);
    lame_set_out_samplerate(encoder.get(), settings.sample_rate_hz);
    if (settings.preset == Preset::best) lame_set_quality(encoder.get(), 4);
    if (settings.preset == Preset::fast) lame_set_quality(encoder.get(), 7);
    set_rate_control(encoder.get(), settings);
    lame_set_bWriteVbrTag(encoder.get(), 0);
    lame_set_disable_reservoir(encoder.get(), 0);
    if (lame_init_params(encoder.get()) < 0) return nullptr;
    return encoder;
}

class LameEncoder final : public Encoder {
public:
    LameEncoder(UniqueLame encoder, const EncoderSettings& settings)
        : encoder_(std::move(encoder)), settings_(settings) {}

    int frame_samples() const noexcept override { return lame_get_framesize(encoder_.get()); }
    int delay_samples() const noexcept override { return lame_get_encoder_delay(encoder_.get()); }
    int lowpass_hz() const noexcept override { return lame_get_lowpassfreq(encoder_.get()); }

    std::int64_t unusable_samples() const noexcept override { return unusable_samples_; }

    Result<void> encode(const PcmBlock& block, const FrameCallback& on_frame) override {
        reserve(block.samples);
        return take(encode_block(block), on_frame);
    }

    Result<void> empty_reservoir(const FrameCallback& on_frame) override {
        reserve(0);
        return take(lame_encode_flush_nogap(encoder_.get(), room(), room_bytes()), on_frame);
    }

    Result<void> flush(const FrameCallback& on_frame) override {
        reserve(0);
        if (Result<void> taken =
                take(lame_encode_flush(encoder_.get(), room(), room_bytes()), on_frame);
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
                return lame_encode_buffer(encoder_.get(),
                                          static_cast<const short*>(block.planes[0]),
                                          static_cast<const short*>(block.planes[1]), block.samples,
                                          room(), room_bytes());
            case SampleFormat::s32:
                return lame_encode_buffer_int(
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
        return lame_encode_buffer_float(encoder_.get(), scaled_[0].data(), scaled_[1].data(),
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

std::string lame_version() {
    return std::string("LAME ") + get_lame_version();
}

}  // namespace polymux::media::mp3
