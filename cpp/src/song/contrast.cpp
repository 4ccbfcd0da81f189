#include "song/contrast.hpp"

#include <algorithm>
#include <functional>
#include <vector>

namespace polymux::song {

namespace {

/// Sums the strongest peaks of each second.
class Seconds {
public:
    explicit Seconds(const Parameters& parameters)
        : frames_(static_cast<float>(parameters.sample_rate_hz) /
                  static_cast<float>(parameters.hop_samples)),
          most_(parameters.decision.strongest_of_second) {}

    void take(const QueryPeak& peak) {
        const int second = static_cast<int>(peak.frame / frames_);
        if (second != second_) {
            end();
            second_ = second;
        }
        prominences_.push_back(peak.prominence);
    }

    void end() {
        const std::size_t count = std::min(prominences_.size(), most_);
        std::partial_sort(prominences_.begin(),
                          prominences_.begin() + static_cast<std::ptrdiff_t>(count),
                          prominences_.end(), std::greater<>());
        for (std::size_t index = 0; index < count; ++index) {
            sum_ += prominences_[index];
        }
        count_ += count;
        prominences_.clear();
    }

    [[nodiscard]] float mean() const noexcept {
        return count_ == 0 ? 0.0F : sum_ / static_cast<float>(count_);
    }

private:
    float frames_;
    std::size_t most_;
    std::vector<float> prominences_;
    float sum_ = 0;
    std::size_t count_ = 0;
    int second_ = 0;
};

}  // namespace

Contrast contrast_of(const Query& query, const Parameters& parameters) {
    Seconds seconds(parameters);
    for (const QueryPeak& peak : query.peaks) {
        seconds.take(peak);
    }
    seconds.end();
    float sum = 0;
    for (const QueryPeak& peak : query.dense[0]) {
        sum += peak.prominence;
    }
    const auto count = static_cast<float>(std::max<std::size_t>(query.dense[0].size(), 1));
    return {.strongest = seconds.mean(), .dense = sum / count};
}

}  // namespace polymux::song
