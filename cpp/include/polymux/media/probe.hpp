// Reads what a file contains from its headers, without decoding the audio.
#pragma once

#include "polymux/cancel.hpp"
#include "polymux/media/info.hpp"
#include "polymux/media/limits.hpp"
#include "polymux/media/source.hpp"
#include "polymux/result.hpp"

namespace polymux::media {

/// Errors: `unsupported_media`, `undecodable`, `limit_exceeded`, `cancelled`, `callback_failed`,
/// `input_unreadable`. A file without audio is not an error.
Result<MediaInfo> probe(ByteSource& source, const Limits& limits = {},
                        const CancelToken& token = {});

}  // namespace polymux::media
