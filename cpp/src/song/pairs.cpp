#include <cstdlib>

#include "polymux/song/peaks.hpp"
#include "song/keys.hpp"

namespace polymux::song {

void append_pairs(std::span<const PackedPeak> peaks, const Parameters& parameters,
                  std::vector<KeyedFrame>& pairs) {
    for (std::size_t first = 0; first < peaks.size(); ++first) {
        const auto frame = static_cast<int>(frame_of(peaks[first]));
        const int bin = bin_of(frequency_of(peaks[first]));
        int made = 0;
        for (std::size_t second = first + 1; second < peaks.size() && made < parameters.pair_fan;
             ++second) {
            const int frames = static_cast<int>(frame_of(peaks[second])) - frame;
            if (frames > parameters.pair_max_frames) {
                break;
            }
            const int bins = bin_of(frequency_of(peaks[second])) - bin;
            if (frames < parameters.pair_min_frames || bins == 0 ||
                std::abs(bins) > parameters.pair_max_bins) {
                continue;
            }
            pairs.push_back(
                {.key = key_of(bin, bins, frames / 2), .frame = static_cast<std::uint32_t>(frame)});
            ++made;
        }
    }
}

}  // namespace polymux::song
