#include <doctest/doctest.h>

#include <array>
#include <random>
#include <string>

#include "mp3_programs.hpp"
#include "polymux/media/mp3/id3.hpp"

using namespace polymux::media;
using namespace polymux::media::mp3;
using namespace polymux::testing;

namespace {

struct Frame {
    std::string id;
    std::string body;
};

std::size_t number_of(std::string_view bytes, unsigned bits) {
    std::size_t value = 0;
    for (const char byte : bytes) value = value << bits | static_cast<unsigned char>(byte);
    return value;
}

std::vector<Frame> frames_in(std::string_view bytes, int version) {
    std::vector<Frame> frames;
    while (bytes.size() > 10 && bytes[0] != '\0') {
        const std::size_t size = number_of(bytes.substr(4, 4), version == 4 ? 7 : 8);
        REQUIRE(10 + size <= bytes.size());
        frames.push_back({std::string(bytes.substr(0, 4)), std::string(bytes.substr(10, size))});
        bytes.remove_prefix(10 + size);
    }
    CHECK(bytes.find_first_not_of('\0') == std::string_view::npos);
    return frames;
}

// Splits a tag into its frames. Fails if sizes do not add up.
std::vector<Frame> frames_of(std::span<const std::byte> tag, int version) {
    const std::string text = as_text(tag);
    REQUIRE(text.size() >= 10);
    CHECK(text.substr(0, 3) == "ID3");
    CHECK(text[3] == static_cast<char>(version));
    CHECK(tag_length(tag) == tag.size());
    return frames_in(std::string_view(text).substr(10), version);
}

std::vector<Frame> frames_for(const Tags& tags, int version) {
    Id3Content content;
    content.tags = tags;
    return frames_of(write_id3v2(content, {version, false}), version);
}

Frame frame_for(const std::string& key, const std::string& value, int version) {
    const auto frames = frames_for({{key, value}}, version);
    REQUIRE(frames.size() == 1);
    return frames.front();
}

std::string literal(const char* text, std::size_t length) {
    return {text, length};
}

// The bytes of a string literal, including NULs.
#define RAW(text) literal(text, sizeof(text) - 1)

Cover make_cover(const TemporaryFolder& folder, const std::string& name, const std::string& type) {
    const auto path = folder.file(name);
    ffmpeg("-f lavfi -i testsrc=s=64x64:d=1:r=1 -frames:v 1 -update 1 '" + path + "'");
    Cover cover;
    cover.mime_type = type;
    cover.description = "Front";
    cover.data = bytes_of(read_file(path));
    return cover;
}

Bytes silent_mp3(const TemporaryFolder& folder) {
    const auto path = folder.file("bare.mp3");
    encode_clip({44'100, 1, 44'100, "-b:a 64k -id3v2_version 0 -write_xing 0"}, path);
    return bytes_of(read_file(path));
}

std::string with_tag(const TemporaryFolder& folder, const Bytes& tag) {
    const auto path = folder.file("tagged.mp3");
    write_file(path, as_text(tag) + as_text(silent_mp3(folder)));
    return path;
}

}  // namespace

TEST_CASE("generic names map to the frames of the standard") {
    struct Row {
        const char* key;
        const char* version3;
        const char* version4;
    };
    const std::array rows = {
        Row{"title", "TIT2", "TIT2"},       Row{"artist", "TPE1", "TPE1"},
        Row{"ALBUM", "TALB", "TALB"},       Row{"album_artist", "TPE2", "TPE2"},
        Row{"track", "TRCK", "TRCK"},       Row{"disc", "TPOS", "TPOS"},
        Row{"genre", "TCON", "TCON"},       Row{"composer", "TCOM", "TCOM"},
        Row{"performer", "TPE3", "TPE3"},   Row{"publisher", "TPUB", "TPUB"},
        Row{"copyright", "TCOP", "TCOP"},   Row{"encoded_by", "TENC", "TENC"},
        Row{"encoder", "TSSE", "TSSE"},     Row{"isrc", "TSRC", "TSRC"},
        Row{"bpm", "TBPM", "TBPM"},         Row{"sort_album", "TSOA", "TSOA"},
        Row{"compilation", "TCMP", "TCMP"}, Row{"comment", "COMM", "COMM"},
        Row{"lyrics-eng", "USLT", "USLT"},  Row{"mood", "TXXX", "TMOO"},
        Row{"orchestra", "TXXX", "TXXX"},   Row{"TMED", "TMED", "TMED"},
        Row{"TORY", "TORY", "TXXX"},        Row{"TDRL", "TXXX", "TDRL"},
        Row{"TXYZ", "TXXX", "TXXX"},        Row{"title-sort", "TSOT", "TSOT"},
    };
    for (const Row& row : rows) {
        INFO(row.key);
        CHECK(frame_for(row.key, "7", 3).id == row.version3);
        CHECK(frame_for(row.key, "7", 4).id == row.version4);
    }
    CHECK(frame_for("language", "deu", 3).id == "TLAN");
    CHECK(frame_for("language", "German", 3).id == "TXXX");
}

TEST_CASE("text is ISO-8859-1, UTF-16 or UTF-8 depending on the version") {
    CHECK(frame_for("title", "Gr\xC3\xBC\xC3\x9F", 3).body == RAW("\x00Gr\xFC\xDF"));
    CHECK(frame_for("title", "Gr\xC3\xBC\xC3\x9F", 4).body == RAW("\x03Gr\xC3\xBC\xC3\x9F"));
    CHECK(frame_for("title", "\xE2\x82\xAC\xF0\x9F\x8E\xB5", 3).body ==
          RAW("\x01\xFF\xFE\xAC\x20\x3C\xD8\xB5\xDF"));
    CHECK(frame_for("title", "\xF0\x9F\x8E\xB5", 4).body == RAW("\x03\xF0\x9F\x8E\xB5"));
    CHECK(frame_for("mykey", "v", 3).body == RAW("\x00mykey\x00v"));
    CHECK(frame_for("k", "\xE2\x82\xAC", 3).body ==
          RAW("\x01\xFF\xFEk\x00\x00\x00\xFF\xFE\xAC\x20"));
    CHECK(frame_for("comment", "c", 3).body == RAW("\x00XXX\x00"
                                                   "c"));
    CHECK(frame_for("lyrics", "la", 4).body == RAW("\x03XXX\x00la"));
    CHECK(frame_for("lyrics-Chorus-ENG", "la", 4).body == RAW("\x03"
                                                              "engChorus\x00la"));
}

TEST_CASE("dates are split for ID3v2.3 and are timestamps in ID3v2.4") {
    const auto as_list = [](const std::string& value, int version) {
        std::string list;
        for (const auto& frame : frames_for({{"date", value}}, version)) {
            list += frame.id + '=' + frame.body.substr(1) + ' ';
        }
        return list;
    };
    CHECK(as_list("2019", 3) == "TYER=2019 ");
    CHECK(as_list("2019-05-03", 3) == "TYER=2019 TDAT=0305 ");
    CHECK(as_list("2019-05-03 10:20", 3) == "TYER=2019 TDAT=0305 TIME=1020 ");
    CHECK(as_list("20190503", 3) == "TYER=2019 TDAT=0305 ");
    CHECK(as_list("2019-05", 4) == "TDRC=2019-05 ");
    CHECK(as_list("20190503", 4) == "TDRC=2019-05-03 ");
    CHECK(as_list("2019-05-03 10:20", 4) == "TDRC=2019-05-03T10:20 ");
    CHECK(as_list("2019-05-03T10:20:30.5Z", 4) == "TDRC=2019-05-03T10:20:30 ");
    for (const int version : {3, 4}) {
        CHECK(as_list("in May", version) == RAW("TXXX=date\0in May "));
        CHECK(as_list("19-5", version) == RAW("TXXX=date\0"
                                              "19-5 "));
        CHECK(as_list("2019-05-03x", version) == RAW("TXXX=date\0"
                                                     "2019-05-03x "));
    }
}

TEST_CASE("several values share one frame") {
    const Tags tags = {{"artist", "A"}, {"ARTIST", "B"},  {"x", "1"},
                       {"X", "2"},      {"comment", "c"}, {"comment", "d"}};
    const auto version3 = frames_for(tags, 3);
    REQUIRE(version3.size() == 3);
    CHECK(version3[0].body == RAW("\x00"
                                  "A/B"));
    CHECK(version3[1].body == RAW("\x00x\x00"
                                  "1/2"));
    CHECK(version3[2].body == RAW("\x00XXX\x00"
                                  "c\nd"));
    const auto version4 = frames_for(tags, 4);
    REQUIRE(version4.size() == 3);
    CHECK(version4[0].body == RAW("\x03"
                                  "A\x00"
                                  "B"));
    CHECK(version4[1].body == RAW("\x03x\x00"
                                  "1\x00"
                                  "2"));
    CHECK(version4[2].body == RAW("\x03XXX\x00"
                                  "c\nd"));
}

TEST_CASE("hostile text is repaired") {
    CHECK(frame_for("title",
                    RAW("a\0b\x01\x7F\xC2\x85"
                        "c\td\r\ne\rf"),
                    4)
              .body == RAW("\x03"
                           "abc d\ne\nf"));
    // A byte that is never valid, a truncated sequence, an overlong form, a surrogate.
    CHECK(frame_for("title", RAW("a\xFF"), 4).body == RAW("\x03"
                                                          "a\xEF\xBF\xBD"));
    CHECK(frame_for("title", RAW("\xE2\x82"), 4).body == RAW("\x03\xEF\xBF\xBD"));
    CHECK(frame_for("title", RAW("\xC0\xAF"), 4).body == RAW("\x03\xEF\xBF\xBD\xEF\xBF\xBD"));
    CHECK(frame_for("title", RAW("\xED\xA0\x80z"), 4).body ==
          RAW("\x03\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz"));
    CHECK(frame_for("title", RAW("\xF4\x90\x80\x80"), 3).body ==
          RAW("\x01\xFF\xFE\xFD\xFF\xFD\xFF\xFD\xFF\xFD\xFF"));
    CHECK(frame_for("a\nb", "c", 4).body == RAW("\x03"
                                                "a b\x00"
                                                "c"));
    Id3Content content;
    content.tags = {{"title", ""}, {"artist", RAW("\0\x01")}};
    CHECK(write_id3v2(content).empty());
}

TEST_CASE("values of 1 MiB are kept, larger ones than the format's limit are named") {
    const std::string large(1 << 20, 'x');
    for (const int version : {3, 4}) {
        CHECK(frame_for("comment", large, version).body.size() == 5 + large.size());
    }
    Id3Content content;
    content.tags = {{"title", "kept"}};
    content.cover.emplace();
    content.cover->mime_type = "image/png";
    content.cover->data.resize((std::size_t{1} << 28) - 40);
    std::vector<std::string> dropped;
    const auto tag = write_id3v2(content, {4, false}, &dropped);
    CHECK(dropped == std::vector<std::string>{"cover"});
    const auto frames = frames_of(tag, 4);
    REQUIRE(frames.size() == 1);
    CHECK(frames[0].id == "TIT2");
}

TEST_CASE("chapters are CHAP frames under one table of contents") {
    Id3Content content;
    content.chapters = {{0, 1'500, {{"title", "One"}}}, {1'500, 1'000, {}}};
    const auto frames = frames_of(write_id3v2(content, {4, false}), 4);
    REQUIRE(frames.size() == 3);
    CHECK(frames[0].id == "CTOC");
    CHECK(frames[0].body == RAW("toc\0\x03\x02"
                                "ch0\0ch1\0"));
    CHECK(frames[1].id == "CHAP");
    CHECK(frames[1].body == RAW("ch0\0\0\0\0\0\0\0\x05\xDC\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
                                "TIT2\0\0\0\x04\0\0\x03One"));
    CHECK(frames[2].body == RAW("ch1\0\0\0\x05\xDC\0\0\x05\xDC\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"));
}

TEST_CASE("more than 255 chapters are listed in a tree") {
    Id3Content content;
    for (int i = 0; i < 600; ++i) content.chapters.push_back({i * 1'000, i * 1'000 + 999, {}});
    const auto frames = frames_of(write_id3v2(content), 3);
    REQUIRE(frames.size() == 604);
    CHECK(frames[0].body == RAW("toc\0\x03\x03toc0\0toc1\0toc2\0"));
    CHECK(frames[1].body.substr(0, 7) == RAW("toc0\0\x01\xFF"));
    CHECK(frames[3].body.substr(0, 13) == RAW("toc2\0\x01\x5A"
                                              "ch510\0"));
    CHECK(frames[603].body.substr(0, 6) == RAW("ch599\0"));
}

TEST_CASE("a cover keeps its bytes and names its type") {
    Id3Content content;
    content.cover = Cover{"image/JPG", "d", 4, bytes_of(RAW("\xFF\xD8\xFF\0\xFF\xE0"))};
    for (const int version : {3, 4}) {
        const auto frames = frames_of(write_id3v2(content, {version, false}), version);
        REQUIRE(frames.size() == 1);
        CHECK(frames[0].id == "APIC");
        CHECK(frames[0].body.substr(1) == RAW("image/jpeg\0\x04"
                                              "d\0\xFF\xD8\xFF\0\xFF\xE0"));
    }
    content.cover->mime_type = "text/html\0";
    content.cover->picture_type = 77;
    CHECK(frames_of(write_id3v2(content), 3)[0].body.substr(1, 8) == RAW("image/\0\0"));
}

TEST_CASE("ffprobe reads back the content of the standard tag") {
    const TemporaryFolder folder;
    Id3Content content;
    content.tags = {
        {"title", "Plain"},      {"artist", "Bj\xC3\xB6rk \xE2\x99\xAB \xF0\x9F\x8E\xB5"},
        {"date", "2019-05-03"},  {"comment", "one\ntwo"},
        {"lyrics-eng", "la la"}, {"track", "3/12"},
        {"My Key", "value"},     {"album", std::string(300, 'a')}};
    content.chapters = {{0, 400, {{"title", "Erstes \xE2\x82\xAC"}}}, {400, 1'000, {}}};
    content.cover = make_cover(folder, "cover.png", "image/png");
    for (const int version : {3, 4}) {
        // FFmpeg 5.1 misreads ID3v2.4's sizes above 127 bytes inside a chapter.
        const std::string second(version == 3 ? 200 : 100, 'c');
        content.chapters[1].tags = {{"title", second}};
        const auto path = with_tag(folder, write_id3v2(content, {version, false}));
        for (const auto& [key, value] : content.tags) {
            CHECK(probed(path, "format_tags='" + key + "'") == value);
        }
        CHECK(probed(path, "chapter=start") == "0\n400");
        CHECK(probed(path, "chapter=end") == "400\n1000");
        CHECK(probed(path, "chapter_tags=title") == "Erstes \xE2\x82\xAC\n" + second);
        CHECK(probed(path, "stream_tags=comment") == "Cover (front)");
        CHECK(probed(path, "stream_tags=title") == "Front");
        const auto copy = folder.file("copy.png");
        ffmpeg("-i '" + path + "' -map 0:v -c copy -update 1 '" + copy + "'");
        CHECK(bytes_of(read_file(copy)) == content.cover->data);
    }
}

TEST_CASE("mpg123 reads back the standard tag") {
    const TemporaryFolder folder;
    Id3Content content;
    content.tags = {{"title", "Caf\xC3\xA9"},
                    {"artist", "\xE2\x99\xAB Band"},
                    {"comment", "a remark"},
                    {"date", "2019-05-03"}};
    for (const int version : {3, 4}) {
        const auto path = with_tag(folder, write_id3v2(content, {version, false}));
        const auto report = output_of("LC_ALL=C.UTF-8 mpg123 -t -v --long-tag '" + path + "' 2>&1");
        INFO(report);
        for (const char* value : {"Caf\xC3\xA9", "\xE2\x99\xAB Band", "a remark"}) {
            CHECK(report.find(value) != std::string::npos);
        }
        // It looks only for ID3v2.3's year.
        CHECK((report.find("2019") != std::string::npos) == (version == 3));
    }
}

TEST_CASE("as_ffmpeg gives ffmpeg's tag byte for byte") {
    const TemporaryFolder folder;
    struct Row {
        std::string metadata;  ///< In FFmpeg's metadata file format.
        Tags tags;             ///< The same, in the order of ffmpeg's dictionary.
    };
    const std::string euro = "\xE2\x82\xAC";
    const std::array rows = {
        Row{"", {}},
        Row{"title=Plain\nartist=" + euro + "\nalbum=Caf\xC3\xA9\ndate=2019-05-03\ncomment=c\n",
            {{"title", "Plain"},
             {"artist", euro},
             {"album", "Caf\xC3\xA9"},
             {"date", "2019-05-03"},
             {"comment", "c"}}},
        Row{"date=1999\nlyrics=la\nTBPM=120\nTYER=1990\nTDRC=1991\ncompilation=1\ngrouping=g\n",
            {{"date", "1999"},
             {"lyrics", "la"},
             {"TBPM", "120"},
             {"TYER", "1990"},
             {"TDRC", "1991"},
             {"compilation", "1"},
             {"grouping", "g"}}},
        Row{"date=Mai 1999\nTIT2=second\ntitle=first\nalbum-sort=s\nArtist=x\n",
            {{"date", "Mai 1999"},
             {"TIT2", "second"},
             {"title", "first"},
             {"album-sort", "s"},
             {"Artist", "x"}}},
        Row{"encoder=old\na=1\nencoder-eng=x\nb=2\nc=3\n",
            {{"encoder", "old"}, {"a", "1"}, {"encoder-eng", "x"}, {"b", "2"}, {"c", "3"}}},
        Row{"id3v2_priv.owner=a\\\\x41\\\\xfFb\ntitle=bad \xFF\xC3( \xED\xA0\x80 \xE2\x82\n",
            {{"id3v2_priv.owner", "a\\x41\\xfFb"},
             {"title", "bad \xFF\xC3( \xED\xA0\x80 \xE2\x82"}}},
        Row{"title=" + std::string(300, 't') +
                "\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=400\n"
                "title=Eins " +
                euro +
                "\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=400\nEND=900\n"
                "title=" +
                std::string(200, 'c') + "\nmood=x\n",
            {{"title", std::string(300, 't')}}},
    };
    const std::vector<Chapter> chapters = {
        {0, 400, {{"title", "Eins " + euro}}},
        {400, 900, {{"title", std::string(200, 'c')}, {"mood", "x"}}}};
    for (const Row& row : rows) {
        for (const int version : {3, 4}) {
            const auto path = folder.file("clip.mp3");
            const auto metadata = folder.file("metadata.txt");
            write_file(metadata, ";FFMETADATA1\n" + row.metadata);
            encode_clip({44'100, 1, 44'100, "-b:a 64k -id3v2_version " + std::to_string(version)},
                        path, "-f ffmetadata -i '" + metadata + "' -map 0:a -map_metadata 1");
            const Bytes file = bytes_of(read_file(path));
            Id3Content content;
            content.tags = row.tags;
            content.tags.emplace_back("encoder", muxer_name());
            if (row.metadata.find("[CHAPTER]") != std::string::npos) content.chapters = chapters;
            const Bytes tag = write_id3v2(content, {version, true});
            INFO(row.metadata, " version ", version);
            CHECK(as_text(tag) == as_text(std::span(file).first(tag_length(file))));
        }
    }
}

TEST_CASE("as_ffmpeg gives ffmpeg's tag with a copied cover") {
    const TemporaryFolder folder;
    for (const bool is_png : {true, false}) {
        const auto name = is_png ? "cover.png" : "cover.jpg";
        auto cover = make_cover(folder, name, is_png ? "image/png" : "image/jpeg");
        for (const std::string description : {"Front", "Gr\xC3\xBC\xC3\x9F"}) {
            for (const int version : {3, 4}) {
                const auto path = folder.file("clip.mp3");
                encode_clip({44'100, 1, 44'100,
                             "-b:a 64k -c:v copy -metadata:s:v title='" + description +
                                 "' -metadata:s:v comment='Cover (back)' -id3v2_version " +
                                 std::to_string(version)},
                            path, "-i '" + folder.file(name) + "' -map 0:a -map 1:v");
                const Bytes file = bytes_of(read_file(path));
                Id3Content content;
                content.tags = {{"encoder", muxer_name()}};
                cover.description = description;
                cover.picture_type = 4;
                content.cover = cover;
                const Bytes tag = write_id3v2(content, {version, true});
                CHECK(as_text(tag) == as_text(std::span(file).first(tag_length(file))));
            }
        }
    }
}

TEST_CASE("as_ffmpeg skips a private frame that ffmpeg refuses, and names it") {
    Id3Content content;
    for (const char* value : {"\\x4", "\\xZZ", "\\x"}) {
        content.tags = {{"id3v2_priv.o", value}, {"title", "t"}};
        std::vector<std::string> dropped;
        CHECK(frames_of(write_id3v2(content, {3, true}, &dropped), 3).size() == 1);
        CHECK(dropped == std::vector<std::string>{"id3v2_priv.o"});
    }
}

TEST_CASE("any content gives a tag whose sizes add up") {
    std::mt19937 random(20'260'102);
    const std::array<std::string, 12> keys = {
        "title",  "date",         "comment",   "lyrics",   "lyrics-",       "TYER",
        "artist", "id3v2_priv.x", "encoder-x", "language", "creation_time", ""};
    const auto text = [&] {
        std::string value(random() % 40, ' ');
        for (char& letter : value) letter = static_cast<char>(random() & 0xFF);
        return value;
    };
    for (int run = 0; run < 5'000; ++run) {
        const auto tags = [&] {
            Tags result;
            for (auto i = random() % 6; i > 0; --i) {
                const bool is_known = random() % 3 > 0;
                result.emplace_back(is_known ? keys[random() % keys.size()] : text(), text());
            }
            return result;
        };
        Id3Content content;
        content.tags = tags();
        for (auto i = random() % 4; i > 0; --i) {
            content.chapters.push_back({static_cast<std::int64_t>(random()) - 1'000'000'000,
                                        static_cast<std::int64_t>(random()) << 3, tags()});
        }
        if (random() % 2 == 0) {
            content.cover =
                Cover{text(), text(), static_cast<int>(random() % 30) - 5, bytes_of(text())};
        }
        for (const int version : {3, 4}) {
            const Bytes tag = write_id3v2(content, {version, false});
            if (!tag.empty()) frames_of(tag, version);
            REQUIRE(tag_length(write_id3v2(content, {version, true})) >= 20);
        }
    }
}
