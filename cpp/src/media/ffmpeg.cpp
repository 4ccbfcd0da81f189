#include "media/ffmpeg.hpp"

#include <array>
#include <cstdarg>
#include <mutex>

namespace polymux::media {

namespace {

// A header may request gigabytes in one block, such as a tag of a RIFF file, which FFmpeg then
// fills with zeros. The largest legitimate blocks are tables of day-long files and frames of
// extreme codecs. The limit applies to every user of the same libavutil in this process.
constexpr std::size_t largest_block_bytes = std::size_t{256} << 20U;

struct CapturedLog {
    int depth = 0;
    std::string last_error;
    bool too_many_streams = false;
};

// Decoders run single-threaded, so a thread's log lines come from its own calls.
thread_local CapturedLog captured_log;

void on_ffmpeg_log(void* context, int level, const char* format, va_list arguments) {
    CapturedLog& log = captured_log;
    if (log.depth == 0) {
        // Another user of the same library in this process: use FFmpeg's default logging.
        av_log_default_callback(context, level, format, arguments);
        return;
    }
    if (level > AV_LOG_ERROR) return;
    std::array<char, 256> line{};
    int print_prefix = 0;
    av_log_format_line2(context, level, format, arguments, line.data(),
                        static_cast<int>(line.size()), &print_prefix);
    try {
        log.last_error.assign(line.data());
    } catch (...) {
        log.last_error.clear();  // Better than an exception through C code.
    }
    if (log.last_error.find("max_streams") != std::string::npos) log.too_many_streams = true;
    while (!log.last_error.empty() && static_cast<unsigned char>(log.last_error.back()) <= ' ') {
        log.last_error.pop_back();
    }
}

}  // namespace

LogCapture::LogCapture() {
    static std::once_flag installed;
    std::call_once(installed, [] {
        av_log_set_callback(on_ffmpeg_log);
        av_max_alloc(largest_block_bytes);
    });
    captured_log.last_error.clear();
    captured_log.too_many_streams = false;
    ++captured_log.depth;
}

LogCapture::~LogCapture() {
    --captured_log.depth;
}

bool LogCapture::too_many_streams() noexcept {
    return captured_log.too_many_streams;
}

std::string ChannelLayout::describe() const {
    std::array<char, 128> text{};
    const int length = av_channel_layout_describe(&layout_, text.data(), text.size());
    return length > 0 ? std::string(text.data()) : std::string();
}

std::span<const std::uint8_t> side_data(const AVStream& stream, AVPacketSideDataType type) {
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 100)
    const AVPacketSideData* found = av_packet_side_data_get(
        stream.codecpar->coded_side_data, stream.codecpar->nb_coded_side_data, type);
    if (found == nullptr) return {};
    return {found->data, found->size};
#else
    std::size_t bytes = 0;
    const std::uint8_t* data = av_stream_get_side_data(&stream, type, &bytes);
    if (data == nullptr) return {};
    return {data, bytes};
#endif
}

Tags to_tags(const AVDictionary* dictionary) {
    Tags tags;
    const AVDictionaryEntry* entry = nullptr;
    while ((entry = av_dict_get(dictionary, "", entry, AV_DICT_IGNORE_SUFFIX)) != nullptr) {
        tags.emplace_back(entry->key, entry->value);
    }
    return tags;
}

std::string ffmpeg_text(int averror) {
    std::array<char, AV_ERROR_MAX_STRING_SIZE> text{};
    av_strerror(averror, text.data(), text.size());
    return text.data();
}

Error ffmpeg_error(ErrorCode code, std::string message, int averror,
                   const std::string& input_name) {
    // ENOMEM also keeps the caller's code, because it nearly always means an absurd size in a
    // header.
    Error error{.code = code, .message = std::move(message), .input_name = input_name};
    error.ffmpeg_code = averror;
    error.ffmpeg_text = ffmpeg_text(averror);
    error.message += ": " + error.ffmpeg_text;
    if (!captured_log.last_error.empty()) {
        error.message += " (" + captured_log.last_error + ")";
    }
    return error;
}

}  // namespace polymux::media
