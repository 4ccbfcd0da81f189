// Tags of RIFF (WAV, AVI) and AIFF: INFO lists, and ID3v2 tags in a chunk.
#include "media/scan/head_scan.hpp"

namespace polymux::media {

namespace {

constexpr std::uint64_t chunk_header_bytes = 8;
constexpr std::uint64_t type_bytes = 4;

class RiffScan {
public:
    RiffScan(HeadScan& scan, bool big_endian) : scan_(scan), big_endian_(big_endian) {}

    void scan_chunks(std::uint64_t offset, std::uint64_t end, bool are_tags) {
        while (!scan_.stopped() && offset < end) {
            const std::optional<std::uint64_t> size =
                big_endian_ ? scan_.big_endian(offset + 4, 4) : scan_.little_endian(offset + 4, 4);
            if (!size) return;
            if (are_tags) scan_.add_tag(type_bytes);
            // libavformat cannot read beyond the samples and return.
            if (!scan_.seekable() && has_samples(offset)) return;
            scan_chunk(offset, *size);
            offset += chunk_header_bytes + *size + *size % 2;
        }
    }

private:
    bool has_samples(std::uint64_t offset) {
        return scan_.has_text(offset, "data") || scan_.has_text(offset, "SSND") ||
               scan_.has_text(offset + chunk_header_bytes, "movi");
    }

    void scan_chunk(std::uint64_t offset, std::uint64_t size) {
        const std::uint64_t content = offset + chunk_header_bytes;
        if (scan_.has_text(offset, "id3 ") || scan_.has_text(offset, "ID3 ")) {
            scan_id3v2(scan_, content);
        } else if (scan_.has_text(offset, "LIST") && scan_.has_text(content, "INFO")) {
            scan_chunks(content + type_bytes, content + size, true);
        } else if (scan_.has_text(offset, "LIST") && scan_.has_text(content, "hdrl")) {
            scan_chunks(content + type_bytes, content + size, false);
        }
    }

    HeadScan& scan_;
    bool big_endian_;
};

}  // namespace

void scan_riff(HeadScan& scan, std::uint64_t offset) {
    const bool aiff = scan.has_text(offset, "FORM");
    const bool riff = scan.has_text(offset, "RIFF") || scan.has_text(offset, "RIFX") ||
                      scan.has_text(offset, "RF64") || scan.has_text(offset, "BW64");
    if (!aiff && !riff) return;
    const bool big_endian = aiff || scan.has_text(offset, "RIFX");
    RiffScan(scan, big_endian)
        .scan_chunks(offset + chunk_header_bytes + type_bytes, UINT64_MAX, false);
}

}  // namespace polymux::media
