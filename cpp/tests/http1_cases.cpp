// http1_cases: reads HTTP/1.1 messages from standard input and prints what the parser reports, for
// comparisons with other parsers.
//
// Each case is a line "KIND SIZE", where KIND is "request" or "response", and SIZE bytes. The
// answer is one line: messages separated by spaces, then the refusal or "ok". A message is a list
// of hexadecimal texts separated by commas: method or status, target or reason, minor version,
// body, names and values of fields; after ";" names and values of trailers.
#include <iostream>
#include <string>
#include <string_view>

#include "polymux/http1/parser.hpp"

namespace {

using namespace polymux::http1;

std::string hex(std::string_view bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (const char byte : bytes) {
        text += digits[static_cast<unsigned char>(byte) >> 4U];
        text += digits[static_cast<unsigned char>(byte) & 15U];
    }
    return text;
}

void add(std::string& text, const FieldList& fields) {
    for (std::size_t index = 0; index < fields.size(); ++index) {
        text += ',' + hex(fields[index].name) + ',' + hex(fields[index].value);
    }
}

std::string read(MessageKind kind, std::string_view input) {
    const Limits limits;
    Parser parser(kind, limits);
    std::string report;
    std::string body;
    bool is_closed = false;
    while (true) {
        switch (is_closed ? parser.finish() : parser.next(input)) {
            case Event::need_input:
                if (is_closed) return report + "ok";
                is_closed = true;
                break;
            case Event::refused:
                return report + std::string(to_string(parser.refusal()));
            case Event::head:
                body.clear();
                break;
            case Event::body:
                body += parser.body();
                break;
            case Event::end: {
                const MessageHead& head = parser.head();
                const bool is_request = kind == MessageKind::request;
                report += hex(is_request ? head.method : std::to_string(head.status)) + ',' +
                          hex(is_request ? head.target : head.reason) + ',' +
                          hex(std::to_string(head.minor_version)) + ',' + hex(body);
                add(report, head.fields);
                report += ';';
                add(report, parser.trailers());
                report += ' ';
                break;
            }
        }
    }
}

}  // namespace

int main() {
    std::string kind;
    std::size_t size = 0;
    while (std::cin >> kind >> size) {
        std::cin.get();
        std::string bytes(size, '\0');
        if (!std::cin.read(bytes.data(), static_cast<std::streamsize>(size))) return 1;
        const bool is_request = kind == "request";
        std::cout << read(is_request ? MessageKind::request : MessageKind::response, bytes) << '\n';
    }
}
