#include "polymux/song/shazam_signature.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <string_view>

#include "song/shazam_signature_peaks.hpp"
#include "song/shazam_signature_spectrum.hpp"

namespace polymux::song {

namespace {

constexpr std::size_t header_bytes = 48;
constexpr std::size_t crc_at = 4;
constexpr std::size_t checked_from = 8;
constexpr std::uint32_t first_magic = 0xCAFE2580;
constexpr std::uint32_t second_magic = 0x94119C00;
constexpr std::uint32_t rate_id = 3U << 27;
constexpr std::uint32_t last_constant = 0x7C0000;
constexpr std::uint32_t body_tag = 0x40000000;
constexpr std::uint32_t first_band_tag = 0x60030040;
constexpr std::uint32_t max_step_frames = 255;
// The reference adds almost a quarter of a second to the number of samples, for an unknown reason.
constexpr std::size_t added_samples = 3840;
static_assert(added_samples * 100 == std::size_t{24} * shazam_rate_hz);

using Bytes = std::vector<std::byte>;

void put(Bytes& bytes, std::uint32_t value, std::size_t width) {
    for (std::size_t i = 0; i < width; ++i) bytes.push_back(static_cast<std::byte>(value >> 8 * i));
}

void put_at(Bytes& bytes, std::size_t at, std::uint32_t value) {
    for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(value >> 8 * i);
}

// CRC-32 of ISO 3309, as in gzip (RFC 1952, 8). The inputs are small.
std::uint32_t crc32(std::span<const std::byte> bytes) noexcept {
    std::uint32_t crc = ~0U;
    for (const std::byte byte : bytes) {
        crc ^= std::to_integer<std::uint32_t>(byte);
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1U ? 0xEDB88320U : 0U);
    }
    return ~crc;
}

Bytes encoded(const std::vector<SignaturePeak>& peaks) {
    Bytes bytes;
    std::uint32_t frame = 0;
    for (const SignaturePeak& peak : peaks) {
        if (peak.frame - frame >= max_step_frames) {
            put(bytes, max_step_frames, 1);
            put(bytes, peak.frame, 4);
            frame = peak.frame;
        }
        put(bytes, peak.frame - frame, 1);
        put(bytes, peak.magnitude, 2);
        put(bytes, peak.bin, 2);
        frame = peak.frame;
    }
    return bytes;
}

Bytes encoded(const SignaturePeakFinder::Bands& bands, std::size_t samples) {
    Bytes bytes(header_bytes);
    put(bytes, body_tag, 4);
    put(bytes, 0, 4);
    for (std::size_t band = 0; band < bands.size(); ++band) {
        if (bands[band].empty()) continue;
        const Bytes peaks = encoded(bands[band]);
        put(bytes, first_band_tag + static_cast<std::uint32_t>(band), 4);
        put(bytes, static_cast<std::uint32_t>(peaks.size()), 4);
        bytes.insert(bytes.end(), peaks.begin(), peaks.end());
        bytes.resize((bytes.size() + 3) / 4 * 4);
    }
    const auto size = static_cast<std::uint32_t>(bytes.size() - header_bytes);
    put_at(bytes, 0, first_magic);
    put_at(bytes, 8, size);
    put_at(bytes, 12, second_magic);
    put_at(bytes, 28, rate_id);
    put_at(bytes, 40, static_cast<std::uint32_t>(samples + added_samples));
    put_at(bytes, 44, last_constant);
    put_at(bytes, header_bytes + 4, size);
    put_at(bytes, crc_at, crc32(std::span(bytes).subspan(checked_from)));
    return bytes;
}

std::int16_t quantised(float sample) noexcept {
    if (std::isnan(sample)) return 0;
    return static_cast<std::int16_t>(
        std::lrint(std::clamp(sample * 32768.0F, -32768.0F, 32767.0F)));
}

}  // namespace

Result<ShazamSignature> shazam_signature(std::span<const std::int16_t> samples) try {
    SignatureSpectrum spectrum;
    SignaturePeakFinder finder;
    std::array<float, signature_bins> power{};
    // An incomplete last hop is ignored.
    for (auto rest = samples; rest.size() >= signature_hop_samples;
         rest = rest.subspan(signature_hop_samples)) {
        spectrum.next(rest.first<signature_hop_samples>(), power);
        finder.next(power);
    }
    std::size_t peaks = 0;
    for (const auto& band : finder.bands()) peaks += band.size();
    return ShazamSignature{.bytes = encoded(finder.bands(), samples.size()),
                           .samples = static_cast<std::int64_t>(samples.size()),
                           .peaks = peaks};
} catch (const std::bad_alloc&) {
    return Error{.code = ErrorCode::out_of_memory,
                 .message = "not enough memory for the signature of the recording"};
}

std::string shazam_uri(std::span<const std::byte> signature) {
    static constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string uri = "data:audio/vnd.shazam.sig;base64,";
    for (std::size_t at = 0; at < signature.size(); at += 3) {
        const std::size_t count = std::min<std::size_t>(3, signature.size() - at);
        std::uint32_t three = 0;
        for (std::size_t i = 0; i < count; ++i) {
            three |= std::to_integer<std::uint32_t>(signature[at + i]) << (16 - 8 * i);
        }
        for (std::size_t i = 0; i < 4; ++i) {
            uri += i <= count ? digits[three >> (18 - 6 * i) & 63U] : '=';
        }
    }
    return uri;
}

std::size_t MiddleSegment::first() const noexcept {
    return given() > max_samples_ ? given() / 2 - max_samples_ / 2 : 0;
}

void MiddleSegment::append(std::span<const float> samples) {
    for (const float sample : samples) kept_.push_back(quantised(sample));
    const std::size_t unneeded = first() - std::min(first(), dropped_);
    // Move rarely: only if at least as much data is unneeded as kept.
    if (unneeded <= max_samples_ || unneeded < kept_.size() / 2) return;
    kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(unneeded));
    dropped_ += unneeded;
}

std::span<const std::int16_t> MiddleSegment::samples() const noexcept {
    const std::span<const std::int16_t> kept = std::span(kept_).subspan(first() - dropped_);
    return kept.first(std::min(kept.size(), max_samples_));
}

}  // namespace polymux::song
