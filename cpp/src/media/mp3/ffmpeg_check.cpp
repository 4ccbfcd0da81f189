#include "media/mp3/ffmpeg_check.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "polymux/media/mp3/frame.hpp"

namespace polymux::media::mp3 {

namespace {

constexpr const char* program = "ffmpeg";
constexpr std::size_t read_bytes = 1 << 16;
constexpr std::size_t header_bytes = 4;

/// The shortest text that is exactly this number, without an exponent.
std::string number(double value) {
    std::array<char, 512> text{};
    const auto end =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed).ptr;
    return {text.data(), end};
}

std::vector<std::string> command(const ConvertOptions& options, const std::string& path) {
    std::vector<std::string> words = {program, "-nostdin", "-v", "error"};
    const auto add = [&words](const char* name, const std::string& value) {
        words.insert(words.end(), {name, value});
    };
    if (options.start_s) add("-ss", number(*options.start_s));
    if (options.end_s) add("-to", number(*options.end_s));
    add("-i", "file:" + path);
    if (options.audio_stream) add("-map", "0:" + std::to_string(*options.audio_stream));
    words.emplace_back("-vn");
    add("-c:a", "libmp3lame");
    if (options.bitrate_bps) {
        add("-b:a", std::to_string(*options.bitrate_bps));
    } else {
        add("-q:a", number(options.vbr_quality.value_or(0)));
    }
    if (options.abr) add("-abr", "1");
    if (options.preset == Preset::best) add("-compression_level", "4");
    if (options.preset == Preset::fast) add("-compression_level", "7");
    if (options.sample_rate_hz) add("-ar", std::to_string(*options.sample_rate_hz));
    if (options.channels) add("-ac", std::to_string(*options.channels));
    // Frames alone.
    add("-map_metadata", "-1");
    add("-id3v2_version", "0");
    add("-write_xing", "0");
    add("-f", "mp3");
    words.emplace_back("pipe:1");
    return words;
}

/// "ffmpeg 5.1.6", from the first line of `ffmpeg -version`.
Result<std::string> version(const CancelToken& token) {
    Result<ChildProcess> child = ChildProcess::start({program, "-version"});
    if (!child) return child.error();
    std::string text;
    std::array<std::byte, 512> buffer{};
    while (text.find('\n') == std::string::npos) {
        const std::size_t bytes = child->read(buffer, token);
        if (bytes == 0) break;
        text.append(reinterpret_cast<const char*>(buffer.data()), bytes);
    }
    constexpr std::string_view before = "ffmpeg version ";
    if (!text.starts_with(before)) return std::string(program);
    const std::size_t end = text.find_first_of(" \n", before.size());
    return std::string(program) + " " + text.substr(before.size(), end - before.size());
}

}  // namespace

Result<std::unique_ptr<FrameCheck>> FfmpegCheck::start(const ConvertOptions& options,
                                                       const std::string& path,
                                                       const CancelToken& token) {
    Result<std::string> found = version(token);
    if (!found) return found.error();
    Result<ChildProcess> child = ChildProcess::start(command(options, path));
    if (!child) return child.error();
    return std::unique_ptr<FrameCheck>(
        std::make_unique<FfmpegCheck>(std::move(*child), *std::move(found), token));
}

Result<void> FfmpegCheck::compare(std::span<const std::byte> frame) {
    Result<std::span<const std::byte>> expected = next_frame();
    if (!expected) return expected.error();
    if (!std::ranges::equal(*expected, frame)) {
        return Error{.code = ErrorCode::encoder_failed,
                     .message = "audio frame " + std::to_string(compared_) +
                                (expected->empty() ? " is missing in the output of "
                                                   : " differs from that of ") +
                                version_ +
                                ". Another version of FFmpeg or LAME may decode or encode "
                                "differently. Use exact for an average or variable bitrate"};
    }
    ++compared_;
    return {};
}

Result<void> FfmpegCheck::finish() {
    Result<std::span<const std::byte>> more = next_frame();
    if (!more) return more.error();
    if (more->empty()) return {};
    return Error{
        .code = ErrorCode::encoder_failed,
        .message = version_ + " writes more than " + std::to_string(compared_) + " audio frames"};
}

/// Empty at the end. Valid until the next call.
Result<std::span<const std::byte>> FfmpegCheck::next_frame() {
    for (;;) {
        const auto available = std::span<const std::byte>(buffer_).subspan(begin_);
        if (available.size() >= header_bytes) {
            const std::optional<FrameHeader> header = parse_header(available);
            if (!header) {
                return Error{.code = ErrorCode::encoder_failed,
                             .message = version_ + " wrote bytes that are not an MP3 frame"};
            }
            const auto bytes = static_cast<std::size_t>(header->frame_bytes);
            if (available.size() >= bytes) {
                begin_ += bytes;
                return available.first(bytes);
            }
        }
        if (read_more()) continue;
        if (token_.cancelled()) {
            return Error{.code = ErrorCode::cancelled, .message = "the conversion was canceled"};
        }
        if (Result<void> ended = program_.finish(); !ended) return ended.error();
        return std::span<const std::byte>();
    }
}

bool FfmpegCheck::read_more() {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(begin_));
    begin_ = 0;
    const std::size_t before = buffer_.size();
    buffer_.resize(before + read_bytes);
    const std::size_t count = program_.read(std::span(buffer_).subspan(before), token_);
    buffer_.resize(before + count);
    return count > 0;
}

}  // namespace polymux::media::mp3
