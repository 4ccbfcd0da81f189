// Information from the headers of a file: container, streams, tags, chapters, cover.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace polymux::media {

/// Ordered key/value pairs in UTF-8, in the order of the file. Keys are FFmpeg's generic names in
/// lower case ("title", "artist", ...) if one exists, otherwise the container's.
using Tags = std::vector<std::pair<std::string, std::string>>;

struct StreamInfo {
    int index = 0;      ///< Number among all streams, from 0.
    std::string type;   ///< "audio", "video", "subtitle", "data", "attachment".
    std::string codec;  ///< FFmpeg's short name, "aac"; "unknown" if none.
    std::optional<double> duration_s;
    std::optional<std::int64_t> bitrate_bps;
    int sample_rate_hz = 0;      ///< Audio only, else 0.
    int channels = 0;            ///< Audio only, else 0.
    std::string channel_layout;  ///< "stereo", "5.1(side)"; audio only.
    std::string sample_format;   ///< "s16", "fltp"; audio only, empty if known only after decoding.
    int bits_per_sample = 0;     ///< Stated by the source material, else 0.
    int width = 0;               ///< Video and images, else 0.
    int height = 0;
    std::string language;  ///< ISO 639 code, or empty.
    bool is_default = false;
    bool is_cover = false;  ///< An attached picture, not moving video.
    bool encrypted = false;
    Tags tags;
};

struct Chapter {
    std::int64_t start_ms = 0;
    std::int64_t end_ms = 0;
    Tags tags;  ///< Usually one "title".
};

/// An embedded cover image. Its bytes are exactly those of the file; polymux never decodes it.
struct Cover {
    std::string mime_type;  ///< "image/jpeg", "image/png", ...
    std::string description;
    int picture_type = 3;  ///< ID3v2 APIC type; 3 is the front cover.
    std::vector<std::byte> data;
};

struct MediaInfo {
    std::string container;  ///< FFmpeg's demuxer name, "mov,mp4,m4a,3gp,3g2,mj2".
    std::string container_long_name;
    std::optional<double> duration_s;
    std::optional<double> start_s;
    std::optional<std::int64_t> bitrate_bps;
    std::optional<std::uint64_t> size_bytes;
    std::vector<StreamInfo> streams;
    std::optional<int> best_audio_stream;  ///< Index by ffmpeg's rule; none without audio.
    Tags tags;
    std::vector<Chapter> chapters;
    std::optional<Cover> cover;
};

}  // namespace polymux::media
