// Writes ID3v2.3 and ID3v2.4 tags. Source: the informal standards at id3.org, and for `as_ffmpeg`
// the observed bytes of libavformat's mp3 muxer.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "polymux/media/info.hpp"

namespace polymux::media::mp3 {

struct Id3Content {
    Tags tags;                      ///< Generic names are mapped to frames (title -> TIT2, ...).
    std::vector<Chapter> chapters;  ///< Become CHAP frames and a table of contents, CTOC.
    std::optional<Cover> cover;     ///< Becomes one APIC frame, its bytes unchanged.
};

struct Id3Options {
    int version = 3;  ///< 3 or 4.
    /// Write exactly the tag of ffmpeg's mp3 muxer. `tags` is then its whole dictionary in order,
    /// "encoder" included. Text is not repaired.
    bool as_ffmpeg = false;
};

/// Returns the complete tag, from "ID3" to its last byte. Never fails: it replaces invalid UTF-8
/// with U+FFFD and tabs with spaces, and drops control characters other than line breaks. It skips
/// an entry that exceeds the format's size limits and names it in `*dropped`, if given. Empty
/// content gives an empty vector (with `as_ffmpeg`, what ffmpeg would write).
std::vector<std::byte> write_id3v2(const Id3Content& content, const Id3Options& options = {},
                                   std::vector<std::string>* dropped = nullptr);

}  // namespace polymux::media::mp3
