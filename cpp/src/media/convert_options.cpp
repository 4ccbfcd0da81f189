#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "media/range.hpp"
#include "polymux/media/convert.hpp"
#include "polymux/media/mp3/frame.hpp"
#include "polymux/text_parsing.hpp"

namespace polymux::media {

namespace {

constexpr int lowest_bitrate_bps = 8'000;
constexpr int highest_bitrate_bps = 320'000;

std::string number(double value) {
    std::array<char, 32> text{};
    const auto [end, status] = std::to_chars(text.data(), text.data() + text.size(), value);
    return status == std::errc() ? std::string(text.data(), end) : std::string("?");
}

void check_rate_control(const ConvertOptions& options, std::vector<std::string>& problems) {
    if (options.bitrate_bps && options.vbr_quality) {
        problems.emplace_back("bitrate and vbr_quality cannot be used together. Set only one");
    }
    if (options.abr && !options.bitrate_bps) {
        problems.emplace_back("abr requires bitrate, the average bitrate to aim for");
    }
    if (options.bitrate_bps &&
        (*options.bitrate_bps < lowest_bitrate_bps || *options.bitrate_bps > highest_bitrate_bps)) {
        std::string text = "bitrate: out of range (got " + std::to_string(*options.bitrate_bps) +
                           " bit/s, allowed " + std::to_string(lowest_bitrate_bps) + " to " +
                           std::to_string(highest_bitrate_bps) + ")";
        // Other encoders, such as lame, expect kbit/s.
        const std::int64_t thousands = std::int64_t{*options.bitrate_bps} * 1000;
        if (thousands >= lowest_bitrate_bps && thousands <= highest_bitrate_bps) {
            text += ". Did you mean " + std::to_string(*options.bitrate_bps) + "k?";
        }
        problems.push_back(std::move(text));
    }
    if (options.vbr_quality && !(*options.vbr_quality >= 0 && *options.vbr_quality < 10)) {
        problems.push_back("vbr_quality: out of range (got " + number(*options.vbr_quality) +
                           ", allowed at least 0, the best quality, and below 10)");
    }
}

void check_format(const ConvertOptions& options, std::vector<std::string>& problems) {
    const std::span<const int> rates = mp3::sample_rates();
    if (options.sample_rate_hz &&
        std::find(rates.begin(), rates.end(), *options.sample_rate_hz) == rates.end()) {
        std::string text = "sample_rate: invalid value (got " +
                           std::to_string(*options.sample_rate_hz) + " Hz, allowed";
        for (const int rate : rates) {
            text += (rate == rates.front() ? " " : ", ") + std::to_string(rate);
        }
        problems.push_back(text + ")");
    }
    if (options.channels && *options.channels != 1 && *options.channels != 2) {
        problems.push_back("channels: invalid value (got " + std::to_string(*options.channels) +
                           ", allowed 1 or 2)");
    }
    if (options.audio_stream && *options.audio_stream < 0) {
        problems.push_back("audio_stream: invalid value (got " +
                           std::to_string(*options.audio_stream) + ", allowed 0 or more)");
    }
    if (options.id3v2_version != 3 && options.id3v2_version != 4) {
        problems.push_back("id3v2_version: invalid value (got " +
                           std::to_string(options.id3v2_version) + ", allowed 3 or 4)");
    }
    if (options.threads < 0) {
        problems.push_back("threads: invalid value (got " + std::to_string(options.threads) +
                           ", allowed 0 or more). 0 uses all cores");
    }
}

void check_limits(const Limits& limits, std::vector<std::string>& problems) {
    const auto positive = [&problems](const char* name, double value) {
        if (value > 0) return;
        problems.push_back("limits." + std::string(name) + ": out of range (got " + number(value) +
                           ", allowed above 0)");
    };
    positive("probe_bytes", static_cast<double>(limits.probe_bytes));
    positive("streams", limits.streams);
    positive("duration_s", limits.duration_s);
    positive("sample_rate_hz", limits.sample_rate_hz);
    positive("channels", limits.channels);
}

Error unknown_bitrate(std::string_view text) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = "bitrate: invalid value (got '" + std::string(text.substr(0, 40)) +
                            "', allowed bits per second such as 128000, 128k or 0.128M)"};
}

}  // namespace

std::optional<std::string> range_problem(std::optional<double> start_s,
                                         std::optional<double> end_s) {
    // Far above any recording, and far below the overflow of microseconds.
    constexpr int highest_s = 1'000'000'000;
    if (start_s && !(*start_s >= 0 && *start_s <= highest_s)) {
        return "start: out of range (got " + number(*start_s) + " s, allowed 0 to " +
               std::to_string(highest_s) + ")";
    }
    if (end_s && !(*end_s > start_s.value_or(0) && *end_s <= highest_s)) {
        return "end: out of range (got " + number(*end_s) + " s, allowed more than the start (" +
               number(start_s.value_or(0)) + " s), up to " + std::to_string(highest_s) + " s)";
    }
    return std::nullopt;
}

Result<void> validate(const ConvertOptions& options) {
    std::vector<std::string> problems;
    check_rate_control(options, problems);
    check_format(options, problems);
    if (auto problem = range_problem(options.start_s, options.end_s)) problems.push_back(*problem);
    check_limits(options.limits, problems);
    if (problems.empty()) return {};
    std::string message;
    for (const std::string& problem : problems) {
        if (!message.empty()) message += "; ";
        message += problem;
    }
    return Error{.code = ErrorCode::invalid_argument, .message = message};
}

Result<int> parse_bitrate(std::string_view text) {
    const std::optional<double> value = parse_bits_per_second(text);
    constexpr double highest = 1e9;  // `validate` checks whether the bitrate is legal.
    if (!value || *value > highest) return unknown_bitrate(text);
    return static_cast<int>(std::lround(*value));
}

}  // namespace polymux::media
