// Helpers of the video tests: drawn frames, their similarity, videos written and read back.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "polymux/video/reader.hpp"
#include "polymux/video/writer.hpp"
#include "support.hpp"

namespace polymux::testing {

using Frame = std::vector<std::byte>;

/// Colors that blend into one another, and a bright square that moves right with the number.
inline Frame drawn(int width, int height, int number) {
    Frame frame;
    for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
            const int left = (4 * number) % std::max(1, width - 8);
            const bool square = x >= left && x < left + 8 && y >= height / 4 && y < height / 4 + 8;
            frame.push_back(static_cast<std::byte>(square ? 230 : 40 + 160 * x / width));
            frame.push_back(static_cast<std::byte>(square ? 220 : 60 + 120 * y / height));
            frame.push_back(static_cast<std::byte>(square ? 210 : 150));
        }
    }
    return frame;
}

/// One color everywhere.
inline Frame plain(int width, int height, int red, int green, int blue) {
    Frame frame;
    for (int pixel = 0; pixel < width * height; ++pixel) {
        for (const int part : {red, green, blue}) frame.push_back(static_cast<std::byte>(part));
    }
    return frame;
}

/// Decibels; 99 for equal frames.
inline double psnr(const Frame& left, const Frame& right) {
    REQUIRE(left.size() == right.size());
    double sum = 0;
    for (std::size_t index = 0; index < left.size(); ++index) {
        const double difference =
            std::to_integer<int>(left[index]) - std::to_integer<int>(right[index]);
        sum += difference * difference;
    }
    if (sum == 0) return 99;
    return 10 * std::log10(255.0 * 255.0 * static_cast<double>(left.size()) / sum);
}

inline std::unique_ptr<video::VideoWriter> open_writer(
    media::ByteSink& sink, const video::VideoFormat& format,
    const video::VideoWriterOptions& options = {}, const CancelToken& token = {}) {
    auto writer = video::VideoWriter::create(sink, format, options, token);
    if (!writer) FAIL(writer.error().message);
    return *std::move(writer);
}

/// Writes drawn frames to a file.
inline video::VideoReport write_drawn(const std::string& path, const video::VideoFormat& format,
                                      int frames, const video::VideoWriterOptions& options = {}) {
    auto sink = media::create_file_sink(path);
    REQUIRE(sink);
    const auto writer = open_writer(**sink, format, options);
    for (int number = 0; number < frames; ++number) {
        const auto written = writer->write(drawn(format.width, format.height, number));
        if (!written) FAIL(written.error().message);
    }
    auto report = writer->finish();
    if (!report) FAIL(report.error().message);
    return *report;
}

struct Reading {
    Result<video::FramesReport> report;
    std::vector<Frame> frames;
};

inline Reading read_all(media::ByteSource& source, const video::FrameOptions& options,
                        const CancelToken& token = {}) {
    std::vector<Frame> frames;
    const auto keep = [&frames](std::span<const std::byte> rgb) {
        frames.emplace_back(rgb.begin(), rgb.end());
        return true;
    };
    auto report = video::read_frames(source, keep, options, token);
    return {.report = std::move(report), .frames = std::move(frames)};
}

inline Reading read_path(const std::string& path, const video::FrameOptions& options) {
    auto source = media::open_file(path);
    REQUIRE(source);
    return read_all(**source, options);
}

}  // namespace polymux::testing
