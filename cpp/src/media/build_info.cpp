#include "polymux/media/build_info.hpp"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avutil.h>
#include <libswresample/swresample.h>
}

#include "polymux/media/mp3/encoder.hpp"

namespace polymux::media {
namespace {

std::string version_text(unsigned version) {
    return std::to_string(AV_VERSION_MAJOR(version)) + "." +
           std::to_string(AV_VERSION_MINOR(version)) + "." +
           std::to_string(AV_VERSION_MICRO(version));
}

std::string compiler() {
#if defined(__clang__)
    return std::string("clang ") + __clang_version__;
#elif defined(__GNUC__)
    return std::string("gcc ") + __VERSION__;
#else
    return "unknown";
#endif
}

}  // namespace

BuildInfo build_info() {
    return {.ffmpeg = av_version_info(),
            .ffmpeg_libraries = {{"libavformat", version_text(avformat_version())},
                                 {"libavcodec", version_text(avcodec_version())},
                                 {"libswresample", version_text(swresample_version())},
                                 {"libavutil", version_text(avutil_version())}},
            .ffmpeg_license = avformat_license(),
            .lame = mp3::lame_version() + " (built in, " + mp3::lame_instructions() + ")",
            .private_deps = POLYMUX_HAS_PRIVATE_DEPS != 0,
            .compiler = compiler(),
            .sanitizer = POLYMUX_SANITIZER};
}

}  // namespace polymux::media
