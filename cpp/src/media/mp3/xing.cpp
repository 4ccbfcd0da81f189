#include "polymux/media/mp3/xing.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

namespace polymux::media::mp3 {

namespace {

// From "Xing" to the tag's CRC: identification, flags, counts, seek table, quality, LAME's part.
constexpr std::size_t tag_bytes = 156;
constexpr std::size_t seek_points = 100;
constexpr std::size_t bag_count = 400;
constexpr int max_delay = 4095;
constexpr std::uint32_t all_fields = 0x0F;  // frames, bytes, seek table, quality

// Offsets from the first byte of "Xing".
constexpr std::size_t flags_at = 4;
constexpr std::size_t frames_at = 8;
constexpr std::size_t bytes_at = 12;
constexpr std::size_t seek_table_at = 16;
constexpr std::size_t quality_at = 116;
constexpr std::size_t encoder_at = 120;
constexpr std::size_t method_at = 129;
constexpr std::size_t lowpass_at = 130;
constexpr std::size_t peak_at = 131;
constexpr std::size_t track_gain_at = 135;
constexpr std::size_t album_gain_at = 137;
constexpr std::size_t encoding_flags_at = 139;
constexpr std::size_t bitrate_at = 140;
constexpr std::size_t delay_at = 141;
constexpr std::size_t misc_at = 144;
constexpr std::size_t preset_at = 146;
constexpr std::size_t music_length_at = 148;
constexpr std::size_t music_crc_at = 152;
constexpr std::size_t tag_crc_at = 154;
constexpr std::size_t encoder_bytes = 9;

constexpr std::array<std::uint16_t, 256> make_crc_table() {
    std::array<std::uint16_t, 256> table{};
    for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
        std::uint32_t crc = byte;
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xA001U : 0U);
        table[byte] = static_cast<std::uint16_t>(crc);
    }
    return table;
}

constexpr std::array<std::uint16_t, 256> crc_table = make_crc_table();

template <std::size_t width>
void put_number(std::span<std::byte> bytes, std::size_t at, std::uint64_t value) {
    for (std::size_t i = 0; i < width; ++i) {
        bytes[at + i] = static_cast<std::byte>((value >> (8 * (width - 1 - i))) & 0xFF);
    }
}

void put_text(std::span<std::byte> bytes, std::size_t at, std::string_view text) {
    std::ranges::transform(text, bytes.begin() + static_cast<std::ptrdiff_t>(at),
                           [](char letter) { return static_cast<std::byte>(letter); });
}

std::uint64_t clamp_to_32_bits(std::int64_t value) {
    return static_cast<std::uint64_t>(
        std::clamp<std::int64_t>(value, 0, std::numeric_limits<std::uint32_t>::max()));
}

std::size_t tag_offset(const FrameHeader& header) {
    return 4 + static_cast<std::size_t>(header.side_info_bytes());
}

// The four bytes of a header without CRC and padding.
std::array<std::byte, 4> header_bytes(const XingSettings& settings, MpegVersion version,
                                      std::size_t bitrate_index) {
    const auto rates = sample_rates();
    const auto rate = std::ranges::find(rates, settings.sample_rate_hz) - rates.begin();
    const unsigned version_bits =
        version == MpegVersion::mpeg1 ? 3 : (version == MpegVersion::mpeg2 ? 2 : 0);
    unsigned mode = settings.channels == 1 ? 3 : 0;
    unsigned original = 0;
    if (!settings.as_ffmpeg) {
        // As in LAME's audio frames, for readers that compare headers.
        if (settings.channels != 1 && settings.joint_stereo) mode = 1;
        original = 1;
    }
    return {std::byte{0xFF}, static_cast<std::byte>(0xE3 | version_bits << 3),
            static_cast<std::byte>(bitrate_index << 4 | static_cast<unsigned>(rate % 3) << 2),
            static_cast<std::byte>(mode << 6 | original << 2)};
}

// The frame of the stream's bitrate, or of the next higher one with enough room for the tag.
std::array<std::byte, 4> choose_header(const XingSettings& settings, MpegVersion version) {
    const auto choices = bitrates(version);
    const auto nearest = std::ranges::min_element(choices, {}, [&](int bitrate_bps) {
        return std::abs(std::int64_t{bitrate_bps} - settings.bitrate_bps);
    });
    auto index = static_cast<std::size_t>(nearest - choices.begin()) + 1;
    for (; index < choices.size(); ++index) {
        const auto header = parse_header(header_bytes(settings, version, index));
        if (header &&
            static_cast<std::size_t>(header->frame_bytes) >= tag_offset(*header) + tag_bytes) {
            break;
        }
    }
    return header_bytes(settings, version, index);
}

bool is_valid(const XingSettings& settings) {
    return version_of(settings.sample_rate_hz) &&
           (settings.channels == 1 || settings.channels == 2);
}

// Position of seek point `index` as the ffmpeg program computes it, in 256ths of the stream.
std::uint64_t coarse_seek_point(std::span<const std::uint64_t> bags, std::size_t index,
                                std::uint64_t total_bytes) {
    if (bags.empty()) return 0;
    return 256 * bags[index * bags.size() / seek_points] / total_bytes;
}

// The same, exact to one frame if there is a bag per frame, and interpolated between bags.
std::uint64_t exact_seek_point(std::span<const std::uint64_t> bags, std::uint64_t frames_per_bag,
                               std::uint64_t frames, std::size_t index, std::uint64_t first_byte,
                               std::uint64_t total_bytes) {
    const std::uint64_t frame = index * frames / seek_points;
    const std::size_t bag = frame / frames_per_bag;
    const auto edge = [&](std::size_t number) {
        return number == 0 ? first_byte : bags[number - 1];
    };
    const bool is_complete = bag < bags.size();
    const std::uint64_t start = edge(std::min(bag, bags.size()));
    const std::uint64_t end = is_complete ? edge(bag + 1) : total_bytes;
    const std::uint64_t width =
        is_complete ? frames_per_bag : std::max<std::uint64_t>(frames - bag * frames_per_bag, 1);
    const std::uint64_t position = start + (end - start) * (frame % frames_per_bag) / width;
    return 256 * position / total_bytes;
}

int stereo_mode(const XingSettings& settings) {
    if (settings.channels == 1) return 0;
    return settings.joint_stereo ? 3 : 1;
}

int source_rate_class(const XingSettings& settings) {
    const int rate_hz =
        settings.source_rate_hz > 0 ? settings.source_rate_hz : settings.sample_rate_hz;
    if (rate_hz <= 32'000) return 0;
    if (rate_hz == 48'000) return 2;
    return rate_hz > 48'000 ? 3 : 1;
}

constexpr bool is_vbr(int method) {
    return method >= 3 && method <= 6;
}

// LAME numbers its presets by bitrate, and V0 to V9 as 500 down to 410.
int preset_number(const XingSettings& settings) {
    if (is_vbr(settings.vbr_method)) {
        return 500 - 10 * ((100 - std::clamp(settings.vbr_scale, 0, 100)) / 10);
    }
    return std::clamp(settings.bitrate_bps / 1000, 0, 320);
}

// The gain and the peak stay zero, "unknown": LAME would need to hear the whole sound with one
// encoder.
void put_lame_details(const XingSettings& settings, MpegVersion version, std::span<std::byte> tag) {
    constexpr int unit_hz = 100;
    const int minimum_bps =
        is_vbr(settings.vbr_method) ? bitrates(version).front() : settings.bitrate_bps;
    const int lowpass = (std::max(settings.lowpass_hz, 0) + unit_hz / 2) / unit_hz;
    const int misc = (settings.noise_shaping & 3) | stereo_mode(settings) << 2 |
                     source_rate_class(settings) << 6;
    put_number<4>(tag, quality_at, clamp_to_32_bits(std::min(settings.vbr_scale, 100)));
    put_number<1>(tag, method_at, static_cast<std::uint64_t>(settings.vbr_method & 0x0F));
    put_number<1>(tag, lowpass_at, static_cast<std::uint64_t>(std::min(lowpass, 255)));
    put_number<1>(tag, encoding_flags_at, static_cast<std::uint64_t>(settings.tag_flags & 0xFF));
    put_number<1>(tag, bitrate_at,
                  static_cast<std::uint64_t>(std::clamp(minimum_bps / 1000, 0, 255)));
    put_number<1>(tag, misc_at, static_cast<std::uint64_t>(misc));
    put_number<2>(tag, preset_at, static_cast<std::uint64_t>(preset_number(settings)));
}

// Name of the gain in three bits, originator (unknown) in three, sign, tenths of a decibel in nine.
std::uint64_t gain_field(std::uint64_t name, std::int32_t gain) {
    constexpr std::int32_t units_per_tenth = 10'000;
    const auto tenths = static_cast<std::uint64_t>(std::abs(gain / units_per_tenth)) & 0x1FF;
    return name << 13 | (gain < 0 ? 1U : 0U) << 9 | tenths;
}

void put_replay_gain(const ReplayGain& replay_gain, std::span<std::byte> tag) {
    constexpr std::uint64_t full_scale = std::uint64_t{1} << 23;
    constexpr std::uint64_t source_full_scale = 100'000;
    const std::uint64_t peak =
        (replay_gain.track_peak * full_scale + source_full_scale / 2) / source_full_scale;
    put_number<4>(tag, peak_at, peak);
    if (replay_gain.track_gain) {
        put_number<2>(tag, track_gain_at, gain_field(1, *replay_gain.track_gain));
    }
    if (replay_gain.album_gain) {
        put_number<2>(tag, album_gain_at, gain_field(2, *replay_gain.album_gain));
    }
}

// Delay and end padding. The ffmpeg program has only the padding of the last packet, which never
// exceeds the decoder's 529 samples by more than one frame.
std::pair<std::int64_t, std::int64_t> delay_and_padding(const XingSettings& settings,
                                                        const FrameHeader& header,
                                                        std::int64_t frames, std::int64_t samples) {
    constexpr std::int64_t decoder_delay = 529;
    const std::int64_t delay = std::clamp(settings.encoder_delay, 0, max_delay);
    std::int64_t padding = frames * header.samples() - settings.encoder_delay - samples;
    if (settings.as_ffmpeg) {
        if (frames == 0) return {0, 0};
        const std::int64_t discard =
            std::clamp<std::int64_t>(padding - decoder_delay, 0, header.samples());
        padding = discard == 0 && frames > 1 ? 0 : discard + decoder_delay;
    }
    return {delay, std::clamp<std::int64_t>(padding, 0, max_delay)};
}

// Covers everything before the checksum. ffmpeg uses 190 bytes of every frame, which is right only
// for MPEG 1 stereo, and zeros after a shorter one.
std::uint16_t tag_checksum(std::span<const std::byte> frame, bool as_ffmpeg, std::size_t offset) {
    constexpr std::size_t ffmpeg_bytes = 190;
    if (!as_ffmpeg) return crc16(frame.first(offset + tag_crc_at));
    const std::size_t present = std::min(frame.size(), ffmpeg_bytes);
    const std::array<std::byte, ffmpeg_bytes> zeros{};
    return crc16(std::span(zeros).first(ffmpeg_bytes - present), crc16(frame.first(present)));
}

}  // namespace

std::uint16_t crc16(std::span<const std::byte> bytes, std::uint16_t seed) noexcept {
    std::uint32_t crc = seed;
    for (const std::byte byte : bytes) {
        crc = (crc >> 8) ^ crc_table[(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xFF];
    }
    return static_cast<std::uint16_t>(crc);
}

XingFrame::XingFrame(const XingSettings& settings) : settings_(settings) {
    if (!is_valid(settings_)) return;
    bags_.reserve(bag_count);
    const auto chosen = choose_header(settings_, *version_of(settings_.sample_rate_hz));
    header_ = parse_header(chosen).value_or(FrameHeader{});
}

std::vector<std::byte> XingFrame::placeholder() const {
    std::vector<std::byte> frame(static_cast<std::size_t>(header_.frame_bytes));
    if (frame.empty()) return frame;
    const auto header = choose_header(settings_, header_.version);
    std::ranges::copy(header, frame.begin());
    return frame;
}

void XingFrame::add_frame(std::span<const std::byte> frame) {
    if (const auto header = parse_header(frame)) {
        if (first_bitrate_bps_ == 0) first_bitrate_bps_ = header->bitrate_bps;
        if (first_bitrate_bps_ != header->bitrate_bps) variable_ = true;
    }
    ++frames_;
    audio_bytes_ += static_cast<std::int64_t>(frame.size());
    music_crc_ = crc16(frame, music_crc_);
    if (++frames_in_bag_ < frames_per_bag_) return;
    frames_in_bag_ = 0;
    bags_.push_back(static_cast<std::uint64_t>(header_.frame_bytes) +
                    static_cast<std::uint64_t>(audio_bytes_));
    if (bags_.size() < bag_count) return;
    for (std::size_t i = 1; i < bag_count; i += 2) bags_[i / 2] = bags_[i];
    bags_.resize(bag_count / 2);
    frames_per_bag_ *= 2;
}

std::vector<std::byte> XingFrame::finish(std::int64_t samples) const {
    std::vector<std::byte> frame = placeholder();
    if (frame.empty()) return frame;
    const std::size_t offset = tag_offset(header_);
    const auto tag = std::span(frame).subspan(offset, tag_bytes);
    const auto total_bytes = static_cast<std::uint64_t>(header_.frame_bytes + audio_bytes_);
    const bool says_vbr =
        variable_ ||
        (!settings_.as_ffmpeg && (settings_.vbr_method == 2 || is_vbr(settings_.vbr_method)));

    put_text(tag, 0, says_vbr ? "Xing" : "Info");
    put_number<4>(tag, flags_at, all_fields);
    put_number<4>(tag, frames_at, clamp_to_32_bits(frames_));
    put_number<4>(tag, bytes_at, clamp_to_32_bits(header_.frame_bytes + audio_bytes_));
    for (std::size_t i = 1; i < seek_points; ++i) {
        const std::uint64_t point =
            settings_.as_ffmpeg
                ? coarse_seek_point(bags_, i, total_bytes)
                : exact_seek_point(bags_, frames_per_bag_, static_cast<std::uint64_t>(frames_), i,
                                   static_cast<std::uint64_t>(header_.frame_bytes), total_bytes);
        put_number<1>(tag, seek_table_at + i, std::min<std::uint64_t>(point, 255));
    }
    put_text(tag, encoder_at, std::string_view(settings_.encoder).substr(0, encoder_bytes));
    if (settings_.replay_gain) put_replay_gain(*settings_.replay_gain, tag);
    if (!settings_.as_ffmpeg) put_lame_details(settings_, header_.version, tag);
    const auto [delay, padding] = delay_and_padding(settings_, header_, frames_, samples);
    put_number<3>(tag, delay_at, static_cast<std::uint64_t>(delay << 12 | padding));
    put_number<4>(tag, music_length_at, clamp_to_32_bits(header_.frame_bytes + audio_bytes_));
    put_number<2>(tag, music_crc_at, music_crc_);

    put_number<2>(tag, tag_crc_at, tag_checksum(frame, settings_.as_ffmpeg, offset));
    return frame;
}

}  // namespace polymux::media::mp3
