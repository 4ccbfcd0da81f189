// A received body checked against the contract, on both sides; and parsed values, written and
// parsed again.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "check.hpp"
#include "polymux/contract/check.hpp"
#include "polymux/contract/json_body.hpp"
#include "polymux/request/json_text.hpp"

using namespace polymux;
using contract::ValueSource;

namespace {

void write(json::Buffer& buffer, const ValueSource& value);

void write_members(json::Buffer& buffer, const ValueSource& value) {
    char before = '{';
    value.members([&](std::string_view name, const ValueSource& member) {
        buffer.append(before);
        before = ',';
        json::append_utf8(buffer, name);
        buffer.append(':');
        write(buffer, member);
        return true;
    });
    if (before == '{') buffer.append('{');
    buffer.append('}');
}

void write_items(json::Buffer& buffer, const ValueSource& value) {
    std::size_t left = value.size();
    buffer.append('[');
    value.items([&](const ValueSource& item) {
        write(buffer, item);
        if (--left > 0) buffer.append(',');
        return true;
    });
    POLYMUX_FUZZ_CHECK(left == 0);
    buffer.append(']');
}

void write(json::Buffer& buffer, const ValueSource& value) {
    switch (value.type()) {
        case contract::type_string:
            json::append_utf8(buffer, value.text_head(std::numeric_limits<std::size_t>::max()));
            break;
        case contract::type_integer:
        case contract::type_number: {
            const contract::Number number = value.number();
            if (number.is_integer && number.fits) {
                json::append_integer(buffer, number.integer);
            } else {
                POLYMUX_FUZZ_CHECK(json::append_number(buffer, number.value));
            }
            break;
        }
        case contract::type_boolean:
            buffer.append(value.boolean() ? "true" : "false");
            break;
        case contract::type_array:
            write_items(buffer, value);
            break;
        case contract::type_object:
            write_members(buffer, value);
            break;
        case contract::type_file:
        case contract::type_null:
            buffer.append("null");
            break;
    }
}

void check(const contract::Operation& operation, const ValueSource& body) {
    for (const contract::Variant& variant : operation.variants) {
        for (const contract::Side side : {contract::Side::client, contract::Side::server}) {
            const contract::Report report = contract::check(operation, variant, body, side);
            POLYMUX_FUZZ_CHECK(report.ok() == report.problems.empty());
            POLYMUX_FUZZ_CHECK(report.problems.size() <= contract::Report::max_problems);
            if (!report.ok()) POLYMUX_FUZZ_CHECK(report.message(operation).size() <= 1900);
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const auto operations = contract::operations();
    const contract::Operation& operation = *operations[data[0] % operations.size()];
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    contract::JsonReader reader;
    const auto body = reader.read(text);
    if (!body) return 0;
    check(operation, **body);
    json::Buffer once;
    write(once, **body);
    contract::JsonReader again;
    const auto read_back = again.read(once.view());
    POLYMUX_FUZZ_CHECK(read_back.has_value());
    json::Buffer twice;
    write(twice, **read_back);
    POLYMUX_FUZZ_CHECK(once.view() == twice.view());
    return 0;
}
