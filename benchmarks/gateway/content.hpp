// What a stream of the fake upstream holds, and when: whoever knows its order knows every byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace gateway {

constexpr std::uint64_t kSecondNs = 1'000'000'000;

// The words of a request that asks for a stream: "stream NUMBER TOKENS RATE BEGIN", each of a fixed
// width, so that a request is as long for every stream.
struct Order {
    std::uint64_t number = 0;
    std::uint64_t tokens = 0;
    std::uint64_t rate = 0;
    std::uint64_t begin_ns = 0;  // CLOCK_MONOTONIC; the first token is due a period later

    std::uint64_t period_ns() const { return kSecondNs / rate; }
    std::uint64_t due_ns(std::uint64_t token) const { return begin_ns + (token + 1) * period_ns(); }
};

constexpr std::string_view kWord = "\"stream ";
constexpr std::size_t kOrderBytes = 6 + 1 + 6 + 1 + 6 + 1 + 20;

// Where the numbers of an order begin; npos in a request that wants no stream.
inline std::size_t order_at(std::string_view request) {
    const std::size_t at = request.find(kWord);
    const bool whole =
        at != std::string_view::npos && request.size() >= at + kWord.size() + kOrderBytes;
    return whole ? at + kWord.size() : std::string_view::npos;
}

inline std::optional<Order> order_of(std::string_view request) {
    const std::size_t at = order_at(request);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string text(request.substr(at, kOrderBytes));
    char* rest = nullptr;
    Order order;
    order.number = std::strtoull(text.c_str(), &rest, 10);
    order.tokens = std::strtoull(rest, &rest, 10);
    order.rate = std::strtoull(rest, &rest, 10);
    order.begin_ns = std::strtoull(rest, &rest, 10);
    if (order.rate == 0 || order.tokens == 0) return std::nullopt;
    return order;
}

inline std::string order_text(const Order& order) {
    const auto plain = [](std::uint64_t count) { return static_cast<unsigned long long>(count); };
    std::array<char, kOrderBytes + 1> text{};
    std::snprintf(text.data(), text.size(), "%06llu %06llu %06llu %020llu", plain(order.number),
                  plain(order.tokens), plain(order.rate), plain(order.begin_ns));
    return text.data();
}

// A number that another stream, or another place in this one, does not have (splitmix64).
inline std::uint64_t mixed(std::uint64_t number, std::uint64_t token) {
    std::uint64_t value = (number << 32U) + token + 0x9e3779b97f4a7c15ULL;
    value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27U)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31U);
}

// The event at a place of a stream: a token, behind the last the end of the answer, then [DONE].
inline std::string event_of(const Order& order, std::uint64_t place) {
    // Some need escapes in JSON, some more than a byte a letter.
    constexpr std::array<std::string_view, 8> kWords = {
        " sky", " blue", R"(,\n)", R"( \"light\")", " été", " 空", R"( \u00e9)", " 😀"};
    if (place > order.tokens) return "data: [DONE]\n\n";
    std::string delta = "{}";
    std::string_view reason = R"("stop")";
    if (place < order.tokens) {
        const std::uint64_t value = mixed(order.number, place);
        std::array<char, 24> digits{};
        std::snprintf(digits.data(), digits.size(), "%llx", static_cast<unsigned long long>(value));
        delta = R"({"content":")" + std::string(kWords[value % kWords.size()]) + digits.data() +
                R"("})";
        reason = "null";
    }
    return R"(data: {"id":"chatcmpl-)" + std::to_string(order.number) +
           R"(","object":"chat.completion.chunk","created":1763740800,"model":"fake-model",)"
           R"("system_fingerprint":"fp_4e32347616","choices":[{"index":0,"delta":)" +
           delta + R"(,"logprobs":null,"finish_reason":)" + std::string(reason) + "}]}\n\n";
}

// How many events a stream has: its tokens, the end of the answer, [DONE].
inline std::uint64_t places_of(const Order& order) {
    return order.tokens + 2;
}

}  // namespace gateway
