// Owning C++ types for FFmpeg's C handles, and Errors for its failures.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avutil.h>
#include <libavutil/channel_layout.h>
#include <libavutil/dict.h>
#include <libavutil/frame.h>
#include <libswresample/swresample.h>
}

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "polymux/media/info.hpp"
#include "polymux/result.hpp"

namespace polymux::media {

/// FFmpeg's internal time base; its own constant for it is not valid C++.
inline constexpr AVRational microseconds{1, AV_TIME_BASE};

/// Buffer size of FFmpeg I/O over a source or a sink.
inline constexpr int avio_buffer_bytes = 64 * 1024;

/// Consecutive empty reads after which the input counts as broken.
inline constexpr int max_empty_reads = 1000;

template <auto free_function>
struct PointerToPointerDeleter {
    template <typename T>
    void operator()(T* handle) const noexcept {
        free_function(&handle);
    }
};

using UniqueFormatContext =
    std::unique_ptr<AVFormatContext, PointerToPointerDeleter<avformat_close_input>>;
using UniqueCodecContext =
    std::unique_ptr<AVCodecContext, PointerToPointerDeleter<avcodec_free_context>>;
using UniqueFrame = std::unique_ptr<AVFrame, PointerToPointerDeleter<av_frame_free>>;
using UniquePacket = std::unique_ptr<AVPacket, PointerToPointerDeleter<av_packet_free>>;
using UniqueSwrContext = std::unique_ptr<SwrContext, PointerToPointerDeleter<swr_free>>;

/// A channel layout that frees its custom map.
class ChannelLayout {
public:
    ChannelLayout() = default;
    explicit ChannelLayout(const AVChannelLayout& other) { assign(other); }
    ChannelLayout(const ChannelLayout& other) { assign(other.layout_); }
    ChannelLayout& operator=(const ChannelLayout& other) {
        if (this != &other) assign(other.layout_);
        return *this;
    }
    ~ChannelLayout() { av_channel_layout_uninit(&layout_); }

    /// FFmpeg's default layout of a channel count (2 is stereo, 6 is 5.1).
    static ChannelLayout of_count(int channels) {
        ChannelLayout result;
        av_channel_layout_default(&result.layout_, channels);
        return result;
    }
    /// `other`, or the default layout of its channel count if it has no positions, as ffmpeg
    /// guesses.
    static ChannelLayout known(const AVChannelLayout& other) {
        return other.order == AV_CHANNEL_ORDER_UNSPEC ? of_count(other.nb_channels)
                                                      : ChannelLayout(other);
    }

    [[nodiscard]] const AVChannelLayout* get() const noexcept { return &layout_; }
    [[nodiscard]] AVChannelLayout* get() noexcept { return &layout_; }
    [[nodiscard]] int channels() const noexcept { return layout_.nb_channels; }
    [[nodiscard]] std::string describe() const;
    bool operator==(const ChannelLayout& other) const noexcept {
        return av_channel_layout_compare(&layout_, &other.layout_) == 0;
    }

private:
    void assign(const AVChannelLayout& other) { av_channel_layout_copy(&layout_, &other); }
    AVChannelLayout layout_{};
};

/// An AVDictionary that frees itself. Converts to the `AVDictionary**` that FFmpeg expects.
class Dictionary {
public:
    Dictionary() = default;
    Dictionary(const Dictionary&) = delete;
    Dictionary& operator=(const Dictionary&) = delete;
    ~Dictionary() { av_dict_free(&entries_); }

    void set(const char* key, const char* value) { av_dict_set(&entries_, key, value, 0); }
    [[nodiscard]] AVDictionary** address() noexcept { return &entries_; }
    [[nodiscard]] const AVDictionary* get() const noexcept { return entries_; }

private:
    AVDictionary* entries_ = nullptr;
};

/// A stream's side data of one type; empty if missing. FFmpeg aligns it for all its structures.
[[nodiscard]] std::span<const std::uint8_t> side_data(const AVStream& stream,
                                                      AVPacketSideDataType type);

[[nodiscard]] Tags to_tags(const AVDictionary* dictionary);

/// FFmpeg's text for an AVERROR value.
[[nodiscard]] std::string ffmpeg_text(int averror);

/// Appends FFmpeg's error text to `message`, and the last line that FFmpeg logged, if any.
[[nodiscard]] Error ffmpeg_error(ErrorCode code, std::string message, int averror,
                                 const std::string& input_name);

/// While an object exists, FFmpeg's log lines of this thread are captured instead of printed. The
/// line that explains a failure ("moov atom not found") then becomes part of the Error.
class LogCapture {
public:
    LogCapture();
    ~LogCapture();
    LogCapture(const LogCapture&) = delete;
    LogCapture& operator=(const LogCapture&) = delete;

    /// Whether FFmpeg failed because of `max_streams`; its error code says only "out of memory".
    [[nodiscard]] static bool too_many_streams() noexcept;
};

}  // namespace polymux::media
