// Versions of the libraries that this build uses.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace polymux::media {

struct BuildInfo {
    std::string ffmpeg;  ///< FFmpeg's own version text, "5.1.9-0+deb12u1".
    std::vector<std::pair<std::string, std::string>>
        ffmpeg_libraries;        ///< "libavformat", "59.27.100".
    std::string ffmpeg_license;  ///< "LGPL version 2.1 or later", ...
    std::string lame;            ///< "LAME 3.100 (built in, AVX2)".
    bool private_deps = false;   ///< Linked to the minimal static FFmpeg of scripts/build.
    std::string compiler;        ///< "gcc 12.2.0".
    std::string sanitizer;       ///< "address", "thread", or empty.
};

/// Returns the versions of the loaded libraries, not of the headers compiled against.
[[nodiscard]] BuildInfo build_info();

}  // namespace polymux::media
