#include "video/encoder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

extern "C" {
#include <libavutil/opt.h>
}

namespace polymux::video {

namespace {

using media::Dictionary;
using media::UniqueCodecContext;

/// x264's scale: 46 is hardly recognizable, 18 looks like the original.
int rate_factor(int quality) {
    return static_cast<int>(std::lround(46.0 - 0.37 * quality));
}

/// The same quality on VP9's scale, which ends at 63.
int vp9_rate_factor(int quality) {
    return std::min(63, static_cast<int>(std::lround(1.35 * rate_factor(quality))));
}

void set_number(Dictionary& options, const char* key, int value) {
    options.set(key, std::to_string(value).c_str());
}

/// Pixels of a row of blocks that fills the widest registers.
constexpr int whole_row = 16 * 16;

void prepare_x264(AVCodecContext& /*encoder*/, Dictionary& options, const EncoderConfig& config) {
    options.set("preset", "medium");
    set_number(options, "crf", rate_factor(config.quality));
    // mbtree reads past the end of other rows, into uninitialized memory; the same frames would
    // produce different files.
    if (config.width % whole_row != 0) options.set("mbtree", "0");
}

/// It supports only bit rates; six of x264's steps double the bits.
void prepare_openh264(AVCodecContext& encoder, Dictionary& /*options*/,
                      const EncoderConfig& config) {
    const double bits_per_pixel = 0.15 * std::exp2((23.0 - rate_factor(config.quality)) / 6.0);
    const double bits = bits_per_pixel * config.width * config.height * config.fps.per_second();
    encoder.bit_rate = static_cast<std::int64_t>(std::clamp(bits, 50'000.0, 100'000'000.0));
}

void prepare_nvenc(AVCodecContext& encoder, Dictionary& options, const EncoderConfig& config) {
    options.set("rc", "vbr");
    set_number(options, "cq", rate_factor(config.quality));
    encoder.bit_rate = 0;
}

void prepare_vp9(AVCodecContext& encoder, Dictionary& options, const EncoderConfig& config) {
    encoder.bit_rate = 0;
    set_number(options, "crf", vp9_rate_factor(config.quality));
    options.set("deadline", "good");
    options.set("cpu-used", "4");
    // Columns of at least 256 pixels, because threads that share rows may produce different files.
    options.set("tile-columns", "2");
}

struct Candidate {
    const char* name;
    VideoCodec codec;
    void (*prepare)(AVCodecContext&, Dictionary&, const EncoderConfig&);
};

// Software encoders first, because their files are reproducible. Uses the ones that this FFmpeg
// has; polymux's own build requests only VP9's.
constexpr std::array<Candidate, 4> candidates = {{
    {.name = "libx264", .codec = VideoCodec::h264, .prepare = &prepare_x264},
    {.name = "libopenh264", .codec = VideoCodec::h264, .prepare = &prepare_openh264},
    {.name = "h264_nvenc", .codec = VideoCodec::h264, .prepare = &prepare_nvenc},
    {.name = "libvpx-vp9", .codec = VideoCodec::vp9, .prepare = &prepare_vp9},
}};

void describe(AVCodecContext& encoder, const EncoderConfig& config) {
    encoder.width = config.width;
    encoder.height = config.height;
    encoder.pix_fmt = AV_PIX_FMT_YUV420P;
    encoder.time_base = {config.fps.denominator, config.fps.numerator};
    encoder.framerate = {config.fps.numerator, config.fps.denominator};
    encoder.sample_aspect_ratio = {1, 1};
    encoder.color_primaries = AVCOL_PRI_BT709;
    encoder.color_trc = AVCOL_TRC_BT709;
    encoder.colorspace = AVCOL_SPC_BT709;
    encoder.color_range = AVCOL_RANGE_MPEG;
    encoder.chroma_sample_location = AVCHROMA_LOC_LEFT;
    encoder.thread_count = config.threads;
    if (config.global_header) encoder.flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
}

/// Returns empty if it does not start: missing hardware, unsupported size.
UniqueCodecContext try_to_open(const Candidate& candidate, const EncoderConfig& config) {
    const AVCodec* codec = avcodec_find_encoder_by_name(candidate.name);
    if (codec == nullptr) return nullptr;
    UniqueCodecContext encoder(avcodec_alloc_context3(codec));
    if (!encoder) return nullptr;
    describe(*encoder, config);
    Dictionary options;
    candidate.prepare(*encoder, options, config);
    if (avcodec_open2(encoder.get(), codec, options.address()) < 0) return nullptr;
    return encoder;
}

}  // namespace

Result<UniqueCodecContext> open_encoder(VideoCodec codec, const EncoderConfig& config) {
    std::string tried;
    for (const Candidate& candidate : candidates) {
        if (codec != VideoCodec::automatic && candidate.codec != codec) continue;
        if (UniqueCodecContext encoder = try_to_open(candidate, config)) return encoder;
        tried += (tried.empty() ? "" : ", ") + std::string(candidate.name);
    }
    const bool only_h264 = codec == VideoCodec::h264;
    return Error{
        .code = ErrorCode::encoder_failed,
        .message =
            "no encoder of this FFmpeg can write a video of " + std::to_string(config.width) + "x" +
            std::to_string(config.height) + " pixels (tried: " + tried + "). " +
            (only_h264 ? "Use the codec vp9 or auto" : "Install an FFmpeg that has libvpx-vp9")};
}

}  // namespace polymux::video
