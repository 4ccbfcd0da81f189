#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "polymux/media/remux.hpp"
#include "support.hpp"

using namespace polymux;
using namespace polymux::media;
using polymux::testing::as_bytes;
using polymux::testing::make_media;
using polymux::testing::read_file;
using polymux::testing::TemporaryFolder;
using polymux::testing::write_file;

namespace {

struct Attempt {
    Result<RemuxReport> report;
    std::vector<std::byte> output;
};

Attempt remux_bytes(const std::vector<std::string_view>& contents, const RemuxOptions& options = {},
                    const CancelToken& token = {}) {
    std::vector<std::unique_ptr<ByteSource>> owners;
    std::vector<ByteSource*> sources;
    for (const std::string_view content : contents) {
        owners.push_back(memory_source(as_bytes(content), "given bytes"));
        sources.push_back(owners.back().get());
    }
    std::vector<std::byte> output;
    // The sink removes uncommitted output when it is destroyed.
    auto report = remux(sources, *memory_sink(&output), options, {}, token);
    return {.report = std::move(report), .output = std::move(output)};
}

const std::vector<std::string> both = {"-f",       "lavfi",   "-i",   "testsrc2=s=96x64:r=25:d=2",
                                       "-f",       "lavfi",   "-i",   "sine=duration=2",
                                       "-c:v",     "libx264", "-c:a", "aac",
                                       "-shortest"};

std::string medium(const std::string& suffix, const std::vector<std::string>& more = {}) {
    const TemporaryFolder folder;
    const std::string path = folder.file("a" + suffix);
    std::vector<std::string> arguments = both;
    arguments.insert(arguments.end(), more.begin(), more.end());
    make_media(path, arguments);
    return read_file(path);
}

/// A sink whose disk is full after so many bytes.
class FullSink final : public ByteSink {
public:
    explicit FullSink(std::size_t room) : inner_(memory_sink(&bytes_)), room_(room) {}

    Result<void> write(std::span<const std::byte> bytes) override {
        if (bytes.size() > room_) {
            return Error{.code = ErrorCode::output_failed, .message = "no space left"};
        }
        room_ -= bytes.size();
        return inner_->write(bytes);
    }
    Result<void> patch(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override {
        return inner_->patch(offset_bytes, bytes);
    }
    Result<std::size_t> read_back(std::uint64_t offset_bytes,
                                  std::span<std::byte> buffer) override {
        return inner_->read_back(offset_bytes, buffer);
    }
    [[nodiscard]] bool can_patch() const noexcept override { return true; }
    [[nodiscard]] bool can_read_back() const noexcept override { return true; }
    Result<void> commit() override {
        committed = true;
        return {};
    }

    bool committed = false;

private:
    std::vector<std::byte> bytes_;
    std::unique_ptr<ByteSink> inner_;
    std::size_t room_;
};

/// A source that cancels at its n-th read, and is slow from then on.
class CancellingSource final : public ByteSource {
public:
    CancellingSource(ByteSource& inner, CancelToken token, int reads)
        : inner_(inner), token_(std::move(token)), left_(reads) {}
    Result<std::size_t> read(std::span<std::byte> buffer) override {
        if (left_ < 0) ++reads_after_cancel;
        if (left_-- == 0) token_.cancel();
        return inner_.read(buffer.first(std::min<std::size_t>(buffer.size(), 4096)));
    }
    Result<void> seek(std::uint64_t offset_bytes) override { return inner_.seek(offset_bytes); }
    [[nodiscard]] bool seekable() const noexcept override { return true; }
    [[nodiscard]] std::optional<std::uint64_t> size_bytes() const noexcept override {
        return inner_.size_bytes();
    }
    [[nodiscard]] const std::string& name() const noexcept override { return inner_.name(); }

    int reads_after_cancel = 0;

private:
    ByteSource& inner_;
    CancelToken token_;
    int left_;
};

}  // namespace

TEST_SUITE("remux of hostile input") {
    TEST_CASE("input that is not media is refused and leaves nothing") {
        struct Case {
            std::string_view content;
            ErrorCode code;
        };
        for (const Case& tried :
             {Case{"", ErrorCode::undecodable},
              Case{"just some text that goes on for a while and is no video at all\n",
                   ErrorCode::unsupported_media},
              Case{"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nfile:///etc/passwd\n",
                   ErrorCode::unsupported_media},
              Case{"ffconcat version 1.0\nfile '/etc/passwd'\n", ErrorCode::unsupported_media},
              Case{"<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\"></MPD>",
                   ErrorCode::unsupported_media}}) {
            CAPTURE(tried.content);
            const Attempt attempt = remux_bytes({tried.content});
            REQUIRE_FALSE(attempt.report);
            CHECK(attempt.report.error().code == tried.code);
            CHECK(attempt.output.empty());
        }
        const std::string good = medium(".ts");
        for (const std::vector<std::string_view>& inputs :
             {std::vector<std::string_view>{}, {good, good, good}}) {
            const Attempt attempt = remux_bytes(inputs);
            REQUIRE_FALSE(attempt.report);
            CHECK(attempt.report.error().code == ErrorCode::invalid_argument);
        }
    }

    TEST_CASE("input truncated anywhere gives a file or an error") {
        for (const char* suffix : {".ts", ".mkv", ".mp4"}) {
            CAPTURE(suffix);
            const std::string whole =
                medium(suffix, std::string_view(suffix) == ".mp4"
                                   ? std::vector<std::string>{"-movflags", "+faststart"}
                                   : std::vector<std::string>{});
            for (std::size_t part = 1; part < 24; ++part) {
                const Attempt attempt =
                    remux_bytes({std::string_view(whole).substr(0, whole.size() * part / 24)});
                CHECK(attempt.report.has_value() == !attempt.output.empty());
            }
        }
    }

    TEST_CASE("damaged bytes give a file or an error") {
        for (const char* suffix : {".ts", ".mkv", ".mp4", ".flv"}) {
            CAPTURE(suffix);
            const std::string whole = medium(suffix);
            std::uint32_t state = 7;
            const auto random = [&state](std::size_t below) {
                state = state * 1664525U + 1013904223U;
                return static_cast<std::size_t>(state >> 8U) % below;
            };
            for (int round = 0; round < 40; ++round) {
                std::string damaged = whole;
                for (int count = 0; count < 1 + round; ++count) {
                    damaged[random(damaged.size())] = static_cast<char>(random(256));
                }
                if (round % 4 == 0) {
                    std::swap_ranges(damaged.begin(), damaged.begin() + 4096,
                                     damaged.begin() + static_cast<std::ptrdiff_t>(
                                                           random(damaged.size() - 4096)));
                }
                const Attempt attempt = remux_bytes({damaged});
                CHECK(attempt.report.has_value() == !attempt.output.empty());
                CHECK(attempt.output.size() < 4 * whole.size() + 100'000);
            }
        }
    }

    TEST_CASE("audio that MP4 cannot describe is detected in advance, or written to Matroska") {
        const TemporaryFolder folder;
        const std::string path = folder.file("a.mkv");
        make_media(path,
                   {"-f", "lavfi", "-i", "sine=duration=1", "-c:a", "eac3", "-frames:a", "1"});
        const Attempt single = remux_bytes({read_file(path)}, {.container = RemuxContainer::mp4});
        REQUIRE_FALSE(single.report);
        CHECK(single.report.error().code == ErrorCode::unsupported_media);
        make_media(path, {"-f", "lavfi", "-i", "sine=duration=1", "-c:a", "libopus"});
        std::string headless = read_file(path);
        const std::size_t head = headless.find("OpusHead");
        REQUIRE(head != std::string::npos);
        // The element before it contains its length: eighteen of its bytes remain.
        headless[head - 1] = static_cast<char>(0x92);
        const Attempt refused = remux_bytes({headless}, {.container = RemuxContainer::mp4});
        CHECK_FALSE(refused.report);
        CHECK(refused.output.empty());
    }

    TEST_CASE("limits refuse") {
        const std::string whole = medium(".mkv");
        for (const auto& [limits, word] : std::vector<std::pair<Limits, std::string>>{
                 {{.duration_s = 1}, "duration_s"},
                 {{.streams = 1}, "streams"},
                 {{.sample_rate_hz = 8000}, "sample_rate_hz"}}) {
            const Attempt attempt = remux_bytes({whole}, {.limits = limits});
            REQUIRE_FALSE(attempt.report);
            CHECK(attempt.report.error().code == ErrorCode::limit_exceeded);
            CHECK(attempt.report.error().message.find(word) != std::string::npos);
            CHECK(attempt.output.empty());
        }
    }

    TEST_CASE("a full disk is reported at whatever byte it happens") {
        const std::string whole = medium(".ts");
        const Attempt good = remux_bytes({whole});
        REQUIRE(good.report);
        for (std::size_t part = 0; part < 8; ++part) {
            FullSink sink(good.output.size() * part / 8);
            const auto source = memory_source(as_bytes(whole), "given bytes");
            const std::array<ByteSource*, 1> sources = {source.get()};
            const auto report = remux(sources, sink);
            REQUIRE_FALSE(report);
            CHECK(report.error().code == ErrorCode::output_failed);
            CHECK_FALSE(sink.committed);
        }
    }

    TEST_CASE("canceled at any moment, it ends without another read") {
        const std::string whole = medium(".mkv", {"-b:v", "2M"});
        int cancelled = 0;
        for (int reads = 0; reads < 40; ++reads) {
            const CancelToken token;
            const auto inner = memory_source(as_bytes(whole), "given bytes");
            CancellingSource source(*inner, token, reads);
            const std::array<ByteSource*, 1> sources = {&source};
            std::vector<std::byte> output;
            const auto sink = memory_sink(&output);
            const auto report = remux(sources, *sink, {}, {}, token);
            if (report) continue;
            ++cancelled;
            CHECK(report.error().code == ErrorCode::cancelled);
            CHECK(source.reads_after_cancel == 0);
            CHECK(output.empty());
        }
        CHECK(cancelled > 5);
    }

    TEST_CASE("a sink that cannot patch is refused") {
        class PlainSink final : public ByteSink {
        public:
            Result<void> write(std::span<const std::byte>) override { return {}; }
            Result<void> patch(std::uint64_t, std::span<const std::byte>) override { return {}; }
            [[nodiscard]] bool can_patch() const noexcept override { return false; }
            Result<void> commit() override { return {}; }
        };
        const std::string whole = medium(".mkv");
        const auto source = memory_source(as_bytes(whole), "given bytes");
        const std::array<ByteSource*, 1> sources = {source.get()};
        PlainSink sink;
        const auto report = remux(sources, sink);
        REQUIRE_FALSE(report);
        CHECK(report.error().code == ErrorCode::invalid_argument);
    }
}
