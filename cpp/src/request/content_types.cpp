#include <algorithm>
#include <array>
#include <utility>

#include "ascii.hpp"
#include "polymux/request/multipart.hpp"

namespace polymux::request {

namespace {

using Entry = std::pair<std::string_view, std::string_view>;

/// Types that the operations accept and files that users attach; sorted. Names are from the IANA
/// registry, or from browsers if the registry lacks the type.
constexpr auto types = std::to_array<Entry>({
    {"3gp", "video/3gpp"},
    {"aac", "audio/aac"},
    {"aif", "audio/aiff"},
    {"aiff", "audio/aiff"},
    {"amr", "audio/amr"},
    {"avi", "video/x-msvideo"},
    {"avif", "image/avif"},
    {"bmp", "image/bmp"},
    {"csv", "text/csv"},
    {"flac", "audio/flac"},
    {"flv", "video/x-flv"},
    {"gif", "image/gif"},
    {"heic", "image/heic"},
    {"htm", "text/html"},
    {"html", "text/html"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"json", "application/json"},
    {"jsonl", "application/jsonl"},
    {"jxl", "image/jxl"},
    {"m4a", "audio/mp4"},
    {"m4v", "video/x-m4v"},
    {"mka", "audio/matroska"},
    {"mkv", "video/matroska"},
    {"mov", "video/quicktime"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"mpeg", "video/mpeg"},
    {"mpg", "video/mpeg"},
    {"oga", "audio/ogg"},
    {"ogg", "audio/ogg"},
    {"ogv", "video/ogg"},
    {"opus", "audio/ogg"},
    {"pdf", "application/pdf"},
    {"pgm", "image/x-portable-graymap"},
    {"png", "image/png"},
    {"pnm", "image/x-portable-anymap"},
    {"ppm", "image/x-portable-pixmap"},
    {"srt", "application/x-subrip"},
    {"svg", "image/svg+xml"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"ts", "video/mp2t"},
    {"txt", "text/plain"},
    {"vtt", "text/vtt"},
    {"wav", "audio/wav"},
    {"weba", "audio/webm"},
    {"webm", "video/webm"},
    {"webp", "image/webp"},
    {"wma", "audio/x-ms-wma"},
    {"wmv", "video/x-ms-wmv"},
    {"zip", "application/zip"},
});
static_assert(std::ranges::is_sorted(types, {}, &Entry::first));

constexpr std::size_t max_extension_length = 8;

}  // namespace

std::string_view content_type_of(std::string_view file_name) {
    constexpr std::string_view unknown = "application/octet-stream";
    const std::size_t dot = file_name.rfind('.');
    if (dot == std::string_view::npos || file_name.size() - dot - 1 > max_extension_length) {
        return unknown;
    }
    std::array<char, max_extension_length> lowered{};
    const std::string_view extension = file_name.substr(dot + 1);
    std::ranges::transform(extension, lowered.begin(), lower);
    const std::string_view wanted(lowered.data(), extension.size());
    const auto found = std::ranges::lower_bound(types, wanted, {}, &Entry::first);
    return found != types.end() && found->first == wanted ? found->second : unknown;
}

}  // namespace polymux::request
