#include <doctest/doctest.h>

#include <string>

#include "media/disguise.hpp"

using polymux::media::may_be_disguised;

namespace {

std::string little_endian(std::size_t value) {
    std::string bytes;
    for (int index = 0; index < 4; ++index) {
        bytes += static_cast<char>(value >> (8 * index) & 0xFFU);
    }
    return bytes;
}

std::string chunk(const std::string& name, const std::string& content) {
    return name + little_endian(content.size()) + content + std::string(content.size() % 2, '\0');
}

std::string wav(const std::string& samples, const std::string& before = "") {
    const std::string chunks =
        "WAVE" + chunk("fmt ", std::string(16, '\1')) + before + chunk("data", samples);
    return "RIFF" + little_endian(chunks.size()) + chunks;
}

bool judged(const std::string& bytes) {
    return may_be_disguised({reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()});
}

// Quiet PCM that cannot contain a sync word: every byte is small and nonzero.
const std::string pcm(5000, '\3');

}  // namespace

TEST_SUITE("disguise") {
    TEST_CASE("plain samples are recognized as such") {
        CHECK_FALSE(judged(wav(pcm)));
        CHECK_FALSE(judged(wav(std::string(64, '\0') + pcm)));
        CHECK_FALSE(judged(wav(std::string(64, '\0'))));
        CHECK_FALSE(judged(wav(pcm, chunk("LIST", "odd"))));
    }

    TEST_CASE("a sync word anywhere in the samples requires a closer look") {
        for (const std::string word :
             {"\x7F\xFE\x80\x01", "\xFE\x7F\x01\x80", "\xF8\x72\x6F\xBA"}) {
            CHECK(judged(wav(word + pcm)));
            CHECK(judged(wav(pcm + word)));
            // Before the samples, it is part of a text.
            CHECK_FALSE(judged(wav(pcm, chunk("LIST", word))));
        }
    }

    TEST_CASE("a frame at the beginning does too, also after silence, but not later") {
        for (const std::string start : {"\xFF\xFB", "\xFF\xF1", "\x56\xE0", "\x0B\x77", "ID3"}) {
            CHECK(judged(wav(start + pcm)));
            CHECK(judged(wav(std::string(100, '\0') + start + pcm)));
            CHECK_FALSE(judged(wav(pcm + start)));
        }
    }

    TEST_CASE("an incomplete WAV header always requires a closer look") {
        const std::string whole = wav(pcm);
        for (const std::size_t length : {0U, 4U, 12U, 19U, 43U}) {
            CHECK_MESSAGE(judged(whole.substr(0, length)), length);
        }
        CHECK(judged("RF64" + whole.substr(4)));
        std::string lying = wav(pcm, chunk("LIST", "text"));
        lying.replace(lying.find("LIST") + 4, 4, "\xFF\xFF\xFF\xFF");
        CHECK(judged(lying));
    }
}
