// bench_stream ROUNDS: CPU time of decoding a chat stream, compared with simdjson and memcpy, in
// turn. Prints a line for each measurement: stream, read size, variant, round, nanoseconds per
// chunk. Fails if a variant returns text that differs from the input.
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "polymux/stream/chat_decoder.hpp"

namespace {

using polymux::stream::ChatBatch;
using polymux::stream::ChatDecoder;
using polymux::stream::ChatRecord;
using polymux::stream::ChunkParser;
using polymux::stream::SseEvent;
using polymux::stream::SseSplitter;

struct Stream {
    std::string bytes;
    std::string text;
    std::vector<std::size_t> reads;  // Sizes, in order.
    std::size_t chunks = 0;
};

Stream make_stream(bool obfuscated, std::size_t mean_read) {
    constexpr std::size_t total_bytes = 6'200'000;
    constexpr std::array<std::string_view, 8> words = {" the", " of", "ing",     " token",
                                                       ",",    " a",  " stream", "."};
    std::mt19937 random(11);  // NOLINT(bugprone-random-generator-seed)
    Stream stream;
    while (stream.bytes.size() < total_bytes) {
        const std::string_view word = words[random() % words.size()];
        stream.text += word;
        stream.bytes +=
            R"(data: {"id":"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG","object":"chat.completion.chunk",)"
            R"("created":1741570283,"model":"gpt-4o-2024-08-06","service_tier":"default",)"
            R"("system_fingerprint":"fp_fc9f1d7035","choices":[{"index":0,"delta":{"content":")";
        stream.bytes += word;
        stream.bytes += R"("},"logprobs":null,"finish_reason":null}],"usage":null)";
        if (obfuscated)
            stream.bytes += R"(,"obfuscation":")" + std::string(random() % 14 + 1, 'x') + '"';
        stream.bytes += "}\n\n";
        ++stream.chunks;
    }
    for (std::size_t at = 0; at < stream.bytes.size();) {
        const std::size_t wanted = mean_read / 2 + random() % mean_read;
        stream.reads.push_back(std::min(wanted, stream.bytes.size() - at));
        at += stream.reads.back();
    }
    return stream;
}

double cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

template <typename Work>
void for_each_read(const Stream& stream, const Work& work) {
    std::size_t at = 0;
    for (const std::size_t size : stream.reads) {
        work(std::string_view(stream.bytes).substr(at, size));
        at += size;
    }
}

std::size_t copy(const Stream& stream, std::string&) {
    static std::string target;
    target.resize(stream.bytes.size());
    char* out = target.data();
    for_each_read(stream, [&out](std::string_view bytes) {
        std::memcpy(out, bytes.data(), bytes.size());
        out += bytes.size();
    });
    return stream.chunks;
}

std::size_t decode(const Stream& stream, std::string& text, bool templates) {
    ChunkParser parser;
    ChatDecoder decoder({.templates = templates});
    ChatBatch batch;
    std::size_t chunks = 0;
    for_each_read(stream, [&](std::string_view bytes) {
        decoder.feed(bytes, parser, batch);
        for (const ChatRecord& record : batch.records()) text.append(batch.text(record));
        chunks += batch.records().size();
        batch.clear();
    });
    return chunks;
}

std::size_t with_templates(const Stream& stream, std::string& text) {
    return decode(stream, text, true);
}

template <typename Parse>
std::size_t split(const Stream& stream, const Parse& parse) {
    SseSplitter splitter;
    SseEvent event;
    std::size_t chunks = 0;
    for_each_read(stream, [&](std::string_view bytes) {
        splitter.append(bytes);
        while (splitter.next(event) == SseSplitter::Found::event) {
            parse(event.data);
            ++chunks;
        }
    });
    return chunks;
}

std::size_t split_only(const Stream& stream, std::string&) {
    return split(stream, [](std::string_view) {});
}

/// Only the needed fields; it does not validate untouched ones.
std::size_t on_demand(const Stream& stream, std::string& text) {
    simdjson::ondemand::parser parser;
    return split(stream, [&](std::string_view json) {
        simdjson::ondemand::document document;
        const std::size_t capacity = json.size() + simdjson::SIMDJSON_PADDING;
        if (parser.iterate(simdjson::padded_string_view(json.data(), json.size(), capacity))
                .get(document) != 0)
            return;
        for (auto choice : document["choices"].get_array()) {
            std::string_view content;
            if (choice["delta"]["content"].get_string().get(content) == 0) text.append(content);
            bool unfinished = false;
            if (choice["finish_reason"].is_null().get(unfinished) != 0 || !unfinished)
                text.append("?");
        }
    });
}

std::size_t dom(const Stream& stream, std::string& text) {
    simdjson::dom::parser parser;
    if (parser.allocate(4096) != 0) return 0;
    return split(stream, [&](std::string_view json) {
        simdjson::dom::element root;
        if (parser.parse(json.data(), json.size(), false).get(root) != 0) return;
        simdjson::dom::element choice;
        std::string_view content;
        if (root["choices"].at(0).get(choice) != 0) return;
        if (choice["delta"]["content"].get(content) == 0) text.append(content);
        if (!choice["finish_reason"].is_null()) text.append("?");
    });
}

struct Variant {
    const char* name;
    std::size_t (*run)(const Stream&, std::string&);
    bool gives_text;
};

constexpr std::array<Variant, 5> variants = {{{"memcpy", &copy, false},
                                              {"split", &split_only, false},
                                              {"polymux", &with_templates, true},
                                              {"ondemand", &on_demand, true},
                                              {"dom", &dom, true}}};

bool measure(const Stream& stream, const char* kind, std::size_t read, long round) {
    std::string text;
    for (const Variant& variant : variants) {
        text.clear();
        text.reserve(stream.text.size() + 64);
        const double before = cpu_ns();
        const std::size_t chunks = variant.run(stream, text);
        const double spent = cpu_ns() - before;
        if (chunks != stream.chunks || (variant.gives_text && text != stream.text)) {
            std::fprintf(stderr, "%s lost text or chunks\n", variant.name);
            return false;
        }
        std::printf("%s %zu %s %ld %.2f\n", kind, read, variant.name, round,
                    spent / static_cast<double>(stream.chunks));
    }
    return true;
}

}  // namespace

int main(int count, char** values) {
    const long rounds = count > 1 ? std::strtol(values[1], nullptr, 10) : 9;
    for (const bool obfuscated : {false, true}) {
        for (const std::size_t read : {std::size_t{300}, std::size_t{1400}, std::size_t{16384}}) {
            const Stream stream = make_stream(obfuscated, read);
            for (long round = 0; round < rounds; ++round) {
                if (!measure(stream, obfuscated ? "obfuscated" : "plain", read, round)) return 1;
            }
        }
    }
    return 0;
}
