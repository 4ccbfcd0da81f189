#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "polymux/media/convert.hpp"
#include "support.hpp"

using namespace polymux;
using namespace polymux::media;
using namespace polymux::testing;

namespace {

/// Puts a program in the place of ffmpeg while it exists.
class InsteadOfFfmpeg {
public:
    explicit InsteadOfFfmpeg(const std::string& script) : path_(std::getenv("PATH")) {
        write_file(folder_.file("ffmpeg"), "#!/bin/sh\n" + script + "\n");
        std::filesystem::permissions(folder_.file("ffmpeg"), std::filesystem::perms::owner_all);
        ::setenv("PATH", (folder_.path() + ":" + path_).c_str(), 1);
    }
    ~InsteadOfFfmpeg() { ::setenv("PATH", path_.c_str(), 1); }
    InsteadOfFfmpeg(const InsteadOfFfmpeg&) = delete;
    InsteadOfFfmpeg& operator=(const InsteadOfFfmpeg&) = delete;

private:
    TemporaryFolder folder_;
    std::string path_;
};

Result<ConvertReport> verified(const std::string& input, const std::string& output) {
    const auto source = open_file(input);
    REQUIRE(source);
    const auto sink = create_file_sink(output);
    REQUIRE(sink);
    ConvertOptions options;
    options.bitrate_bps = 128'000;
    options.verify = Verify::ffmpeg;
    return convert_to_mp3(**source, **sink, options);
}

}  // namespace

TEST_CASE("frames that differ from ffmpeg's, and programs that fail, are errors") {
    const TemporaryFolder folder;
    const std::string input = folder.file("-a %d|b.wav");
    const std::string frames = folder.file("frames");
    make_media(folder.file("sound.wav"), {"-f", "lavfi", "-i", "sine=duration=1"});
    std::filesystem::rename(folder.file("sound.wav"), input);
    make_media(folder.file("theirs.mp3"),
               {"-i", input, "-b:a", "128k", "-write_xing", "0", "-id3v2_version", "0"});
    const std::string theirs = read_file(folder.file("theirs.mp3"));
    std::string changed = theirs;
    changed[changed.size() / 2] ^= 1;
    const std::string write = "exec cat '" + frames + "'";
    struct Case {
        std::string script;
        std::string content;
        bool is_equal;
    };
    for (const Case& one : std::vector<Case>{{write, theirs, true},
                                             {write, changed, false},
                                             {write, theirs.substr(0, theirs.size() - 417), false},
                                             {write, theirs + theirs.substr(0, 417), false},
                                             {"cat '" + frames + "'; exit 3", theirs, false},
                                             {"cat '" + frames + "'; kill -9 $$", theirs, false},
                                             {"echo no MP3", "", false},
                                             {"exit 0", "", false}}) {
        CAPTURE(one.script);
        CAPTURE(one.content.size());
        write_file(frames, one.content);
        const InsteadOfFfmpeg program(one.script);
        const std::string output = folder.file("ours.mp3");
        const auto report = verified(input, output);
        CHECK(static_cast<bool>(report) == one.is_equal);
        CHECK(std::filesystem::exists(output) == one.is_equal);
        if (!report) CHECK(report.error().code == ErrorCode::encoder_failed);
        std::filesystem::remove(output);
    }
    const auto report = verified(input, folder.file("ours.mp3"));
    REQUIRE(report);
    CHECK(report->reference.starts_with("ffmpeg "));
}
