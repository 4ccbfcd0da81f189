// What the floor server says and reads: bodies in chunks, and its three kinds of answers.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace floor_http {

constexpr std::size_t kAnswerBytes = 683;

struct Counters {
    std::uint64_t connections = 0;
    std::uint64_t requests = 0;
    std::uint64_t body_bytes = 0;
    std::uint64_t events = 0;

    // As one line of JSON.
    void print() const {
        const auto plain = [](std::uint64_t count) {
            return static_cast<unsigned long long>(count);
        };
        std::printf(
            "{\"connections\": %llu, \"requests\": %llu, \"body_bytes\": %llu, \"events\": %llu}\n",
            plain(connections), plain(requests), plain(body_bytes), plain(events));
    }
};

// What is left of a body in chunks (RFC 9112, 7.1).
struct Chunks {
    enum class At { kSize, kExtension, kData, kDataEnd, kTrailer, kEnd };
    At at = At::kSize;
    std::uint64_t left = 0;
    bool line_empty = true;

    // Takes `data`; gives how many bytes of content were in it, and sets `used`.
    std::uint64_t take(std::string_view data, std::size_t& used);
};

inline std::uint64_t Chunks::take(std::string_view data, std::size_t& used) {
    std::uint64_t content = 0;
    for (used = 0; used < data.size() && at != At::kEnd;) {
        if (at == At::kData) {
            const std::uint64_t step = std::min<std::uint64_t>(left, data.size() - used);
            used += step;
            content += step;
            left -= step;
            if (left == 0) at = At::kDataEnd;
            continue;
        }
        const char byte = data[used++];
        if (at == At::kTrailer) {
            if (byte == '\n' && line_empty) at = At::kEnd;
            if (byte != '\r') line_empty = byte == '\n';
        } else if (byte == '\n') {
            const bool last = at != At::kDataEnd && left == 0;
            line_empty = true;
            at = at == At::kDataEnd ? At::kSize : last ? At::kTrailer : At::kData;
        } else if (at == At::kSize && std::isxdigit(static_cast<unsigned char>(byte)) != 0) {
            const int digit = byte <= '9' ? byte - '0' : (byte | 0x20) - 'a' + 10;
            left = left * 16 + static_cast<std::uint64_t>(digit);
        } else if (at == At::kSize && byte != '\r') {
            at = At::kExtension;
        }
    }
    return content;
}

// A number of a request's query or header; `name` is followed by it.
inline std::uint64_t parameter(std::string_view target, std::string_view name,
                               std::uint64_t absent) {
    const std::size_t start = target.find(name);
    if (start == std::string_view::npos) return absent;
    return std::strtoull(target.data() + start + name.size(), nullptr, 10);
}

inline std::string small_answer() {
    std::string body =
        R"({"id":"chatcmpl-0d6fa6a1-1c2b-4d3e-9f50-6a7b8c9d0e1f","object":"chat.completion",)"
        R"("created":1763740800,"model":"llama-3.3-70b-versatile","choices":[{"index":0,"message":)"
        R"({"role":"assistant","content":""},"logprobs":null,"finish_reason":"stop"}],"usage":)"
        R"({"queue_time":0.012,"prompt_tokens":12,"prompt_time":0.002,"completion_tokens":40,)"
        R"("completion_time":0.04,"total_tokens":52,"total_time":0.042},"system_fingerprint":)"
        R"("fp_4e32347616","x_groq":{"id":"req_01j"}})";
    constexpr std::string_view kWords = "The sky scatters blue light more than red. ";
    const std::size_t at = body.find(R"("content":")") + 11;
    std::string text;
    while (text.size() < kAnswerBytes - body.size()) text += kWords;
    body.insert(at, text.substr(0, kAnswerBytes - body.size()));
    return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
}

// One event of a streamed chat as one chunk; its text is the time, or a word where that is 0.
inline std::string event_chunk(std::uint64_t number, std::uint64_t time_ns) {
    const std::string text =
        time_ns == 0 ? " w" + std::to_string(number % 10'000) : std::to_string(time_ns);
    const std::string event =
        R"(data: {"id":"chatcmpl-0d6fa6a1-1c2b-4d3e-9f50-6a7b8c9d0e1f","object":)"
        R"("chat.completion.chunk","created":1763740800,"model":"llama-3.3-70b-versatile",)"
        R"("system_fingerprint":"fp_4e32347616","choices":[{"index":0,"delta":{"content":")" +
        text + R"("},"logprobs":null,"finish_reason":null}]})" + "\n\n";
    std::array<char, 16> size{};
    std::snprintf(size.data(), size.size(), "%zx\r\n", event.size());
    return size.data() + event + "\r\n";
}

}  // namespace floor_http
