// Is the list of LAME's state complete, and does it contain nothing superfluous? An encoder that
// has encoded another sound gets the state, and must then write the same frames.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "media/mp3/coded_frame.hpp"
#include "media/mp3/lame_library.h"
#include "parallel_support.hpp"
#include "support.hpp"

using namespace polymux;
using namespace polymux::media::mp3;
using namespace polymux::testing;

namespace {

constexpr int warm_up_frames = 20;
constexpr int compared_frames = 16;

struct Case {
    const char* name;
    EncoderSettings settings;
    polymux_lame_settings lame;
};

std::vector<Case> cases() {
    return {{"CBR 192", cbr(192'000), {44'100, 2, polymux_lame_cbr, 192, 0, -1}},
            {"CBR 48, MPEG 2", cbr(48'000, 22'050, 2), {22'050, 2, polymux_lame_cbr, 48, 0, -1}},
            {"CBR 64, mono", cbr(64'000, 44'100, 1), {44'100, 1, polymux_lame_cbr, 64, 0, -1}},
            {"ABR 112", abr(112'000), {44'100, 2, polymux_lame_abr, 112, 0, -1}},
            {"V2", vbr(2), {44'100, 2, polymux_lame_vbr, 0, 2, -1}}};
}

using Parts = std::multimap<std::string, polymux_lame_part>;

/// LAME without the classes above it.
class Lame {
public:
    explicit Lame(const Case& what)
        : encoder_(polymux_lame_baseline.create(&what.lame), polymux_lame_baseline.destroy),
          settings_(what.settings),
          splitter_(shape_of(what.settings)) {
        REQUIRE(encoder_ != nullptr);
    }

    void encode(const Pcm& pcm, int frame) {
        const int samples = shape_of(settings_).frame_samples();
        const int begin = frame * samples;
        const auto& left = pcm.planes.front();
        const auto& right = pcm.planes.back();
        take(polymux_lame_baseline.encode_s16(encoder_.get(), left.data() + begin,
                                              right.data() + begin, samples, room_.data(),
                                              static_cast<int>(room_.size())));
    }

    void empty_reservoir() {
        take(polymux_lame_baseline.empty_reservoir(encoder_.get(), room_.data(),
                                                   static_cast<int>(room_.size())));
        bytes_.clear();
        first_number_ = polymux_lame_baseline.coded_frames(encoder_.get());
    }

    [[nodiscard]] Parts parts() {
        std::vector<polymux_lame_part> parts(polymux_lame_max_parts);
        parts.resize(
            static_cast<std::size_t>(polymux_lame_baseline.state(encoder_.get(), parts.data())));
        Parts found;
        for (const polymux_lame_part& part : parts) found.emplace(part.name, part);
        for (int channel = 0; channel < settings_.channels; ++channel) {
            const auto search = polymux_lame_baseline.search(encoder_.get(), channel);
            if (search.gain == nullptr) break;
            found.emplace("OldValue", polymux_lame_part{"OldValue", search.gain, sizeof(int)});
            found.emplace("CurrentStep",
                          polymux_lame_part{"CurrentStep", search.step, sizeof(int)});
        }
        return found;
    }

    /// The bytes since the reservoir was emptied, as frames.
    [[nodiscard]] std::vector<CodedFrame> frames() {
        std::vector<CodedFrame> found;
        const std::span<const std::byte> all = std::as_bytes(std::span(bytes_));
        for (std::size_t begin = 0; begin + 4 <= all.size();) {
            const auto header = parse_header(all.subspan(begin));
            REQUIRE(header);
            const auto bytes = static_cast<std::size_t>(header->frame_bytes);
            if (begin + bytes > all.size()) break;
            const int number = first_number_ + static_cast<int>(found.size());
            const auto demand = polymux_lame_baseline.demand(encoder_.get(), number);
            auto frame = splitter_.split(all.subspan(begin, bytes), {.silent = demand.silent != 0});
            REQUIRE(frame);
            found.push_back(std::move(*frame));
            begin += bytes;
        }
        return found;
    }

private:
    void take(int count) {
        REQUIRE(count >= 0);
        bytes_.insert(bytes_.end(), room_.begin(), room_.begin() + count);
    }

    std::unique_ptr<lame_global_struct, int (*)(lame_global_struct*)> encoder_;
    EncoderSettings settings_;
    FrameSplitter splitter_;
    std::vector<unsigned char> room_ = std::vector<unsigned char>(1 << 14);
    std::vector<unsigned char> bytes_;
    int first_number_ = 0;
};

bool same(const CodedFrame& one, const CodedFrame& other) {
    return one.head == other.head && one.main_data == other.main_data && one.size == other.size;
}

/// A sound, encoded up to a frame and beyond it.
struct Reference {
    const Case& what;
    const Pcm& pcm;
    int start;
    std::map<std::string, std::vector<std::vector<std::byte>>> state;  // Before the next frame.
    std::vector<CodedFrame> frames;
};

int frame_count(const Case& what, const Pcm& pcm) {
    return pcm.samples() / shape_of(what.settings).frame_samples();
}

Reference encode_reference(const Case& what, const Pcm& pcm, int start) {
    Reference found{.what = what, .pcm = pcm, .start = start, .state = {}, .frames = {}};
    Lame lame(what);
    for (int frame = start - warm_up_frames; frame <= start; ++frame) lame.encode(pcm, frame);
    lame.empty_reservoir();
    for (const auto& [name, part] : lame.parts()) {
        const auto* bytes = static_cast<const std::byte*>(part.data);
        found.state[name].emplace_back(bytes, bytes + part.bytes);
    }
    for (int i = 1; i <= compared_frames; ++i) lame.encode(pcm, start + i);
    found.frames = lame.frames();
    return found;
}

/// Whether an encoder that has encoded another part of the sound writes the same frames, once it
/// has the state without the part named `left_out`.
bool same_frames(const Reference& reference, const std::string& left_out) {
    const int count = frame_count(reference.what, reference.pcm) - warm_up_frames;
    const int elsewhere = (reference.start + count / 2) % count;
    Lame lame(reference.what);
    for (int i = 0; i < warm_up_frames; ++i) lame.encode(reference.pcm, elsewhere + i);
    lame.empty_reservoir();
    std::map<std::string, std::size_t> seen;
    for (const auto& [name, part] : lame.parts()) {
        const auto& bytes = reference.state.at(name).at(seen[name]++);
        REQUIRE(bytes.size() == part.bytes);
        if (name != left_out) std::memcpy(part.data, bytes.data(), bytes.size());
    }
    for (int i = 1; i <= compared_frames; ++i) lame.encode(reference.pcm, reference.start + i);
    const auto found = lame.frames();
    return std::ranges::equal(found, reference.frames, same);
}

}  // namespace

TEST_SUITE("encoder state") {
    TEST_CASE("the state is complete, and every part of it matters") {
        // Equal here by construction: both encoders have as many samples and an empty reservoir.
        // The step with which LAME begins a search hardly ever changes what it finds.
        std::set<std::string> matters = {"mf_size", "ResvSize", "CurrentStep"};
        std::set<std::string> all;
        for (const Case& what : cases()) {
            CAPTURE(what.name);
            for (const Sound sound : {Sound::drums, Sound::mix, Sound::bursts}) {
                const Pcm pcm =
                    make_sound(sound, what.settings.sample_rate_hz, what.settings.channels, 14);
                const int end = frame_count(what, pcm) - compared_frames;
                for (int start = warm_up_frames; start < end; start += 29) {
                    CAPTURE(start);
                    const Reference reference = encode_reference(what, pcm, start);
                    CHECK(same_frames(reference, ""));
                    for (const auto& [name, bytes] : reference.state) {
                        all.insert(name);
                        if (!matters.contains(name) && !same_frames(reference, name)) {
                            matters.insert(name);
                        }
                    }
                }
            }
        }
        for (const std::string& name : all) {
            CAPTURE(name);
            CHECK(matters.contains(name));
        }
    }
}
