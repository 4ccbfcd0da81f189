// The file that a remux writes: a muxer over a sink.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "media/avio_output.hpp"
#include "media/ffmpeg.hpp"
#include "media/info.hpp"
#include "media/mp4_audio.hpp"
#include "media/remux_format.hpp"

namespace polymux::media {

struct FreeFormatContext {
    void operator()(AVFormatContext* context) const noexcept { avformat_free_context(context); }
};
using UniqueMuxer = std::unique_ptr<AVFormatContext, FreeFormatContext>;

/// Lifecycle: `create`, `add_stream`*, `set_metadata`, `begin`, `write`*, `finish`.
class RemuxOutput {
public:
    /// The sink and token must outlive this object.
    static Result<std::unique_ptr<RemuxOutput>> create(ByteSink& sink, const RemuxFormat& format,
                                                       const CancelToken& token);

    /// `first` is the stream's first packet, if it has any.
    Result<void> add_stream(const AVStream& input, const AVPacket* first);
    Result<void> set_metadata(const Tags& tags, const std::vector<Chapter>& chapters);
    Result<void> begin();

    /// Writes the packet of stream `index`, whose times are in `time_base` and begin at `zero`.
    /// Returns false for a packet that is too damaged for the container; it is dropped.
    Result<bool> write(std::size_t index, AVPacket& packet, AVRational time_base,
                       std::int64_t zero);
    Result<void> finish();

    [[nodiscard]] std::int64_t bytes() const noexcept { return io_->bytes(); }

private:
    /// Output state of one stream.
    struct Lane {
        explicit Lane(AVCodecID codec) noexcept : dolby(codec) {}

        std::int64_t audio_remainder = AV_NOPTS_VALUE;  ///< State of av_rescale_delta.
        std::optional<std::int64_t> last_dts;
        DolbyFrames dolby;
    };

    RemuxOutput(std::unique_ptr<AvioOutput> io, const RemuxFormat& format)
        : io_(std::move(io)), format_(format) {}
    void rescale(Lane& lane, const AVStream& stream, AVPacket& packet, AVRational from) const;
    Result<void> add_chapter(const Chapter& chapter);
    [[nodiscard]] Error explain(std::string message, int status) const;
    [[nodiscard]] bool is_mp4() const noexcept { return format_.container == RemuxContainer::mp4; }

    // Order matters: the muxer writes through io_ until it is closed.
    std::unique_ptr<AvioOutput> io_;
    UniqueMuxer muxer_;
    RemuxFormat format_;
    std::vector<Lane> lanes_;
};

}  // namespace polymux::media
