// Made by scripts/generate from contract/; do not edit.
// clang-format off
#pragma once

#include <array>

#include "polymux/contract/contract.hpp"

namespace polymux::contract::generated {

extern const Operation chat;
extern const Operation free_chat;
extern const Operation search_music;
extern const Operation generate_image;
extern const Operation upscale_image;
extern const Operation transcribe;
extern const Operation generate_video;
extern const Operation generate_music;
extern const Operation identify_song;
extern const Operation download_video;
extern const Operation summarize_video;
extern const Operation download_music;
extern const Operation convert_to_mp3;
extern const Operation read_text;

constexpr std::array<const Operation*, 14> all = {
    &chat,
    &free_chat,
    &search_music,
    &generate_image,
    &upscale_image,
    &transcribe,
    &generate_video,
    &generate_music,
    &identify_song,
    &download_video,
    &summarize_video,
    &download_music,
    &convert_to_mp3,
    &read_text,
};

}  // namespace polymux::contract::generated
