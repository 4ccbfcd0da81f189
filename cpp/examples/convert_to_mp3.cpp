// convert_to_mp3 INPUT OUTPUT.mp3: uses the whole library in one small program.
#include <cstdio>

#include "polymux/media/convert.hpp"
#include "polymux/media/sink.hpp"
#include "polymux/media/source.hpp"

namespace {

int fail(const polymux::Error& error) {
    std::fprintf(stderr, "convert_to_mp3: %s\n", error.message.c_str());
    return 1;
}

bool show(const polymux::media::Progress& progress) {
    std::fprintf(stderr, "\r%.0f of %.0f s", progress.position_s, progress.duration_s.value_or(0));
    return true;  // false would stop the conversion
}

}  // namespace

int main(int argument_count, char** arguments) {
    if (argument_count != 3) {
        std::fputs("usage: convert_to_mp3 INPUT OUTPUT.mp3\n", stderr);
        return 2;
    }
    auto source = polymux::media::open_file(arguments[1]);
    if (!source) return fail(source.error());

    // With the input's identity, the sink can refuse to replace the file that is being read.
    auto sink = polymux::media::create_file_sink(arguments[2], {.input = (*source)->identity()});
    if (!sink) return fail(sink.error());

    polymux::media::ConvertOptions options;
    options.bitrate_bps = 128'000;
    const auto report = polymux::media::convert_to_mp3(**source, **sink, options, show);
    if (!report) return fail(report.error());

    std::printf("\n%.2f s of audio, %lld frames, %lld bytes\n", report->duration_s,
                static_cast<long long>(report->frames), static_cast<long long>(report->bytes));
    return 0;
}
