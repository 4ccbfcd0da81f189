#include <array>
#include <string>

#include "contract/display.hpp"
#include "polymux/contract/contract.hpp"
#include "polymux/request/json_text.hpp"

namespace polymux::contract {

namespace {

/// Writes members of an object, separated by commas.
class Members {
public:
    explicit Members(json::Buffer& buffer) : buffer_(buffer) { buffer_.append('{'); }
    void end() { buffer_.append('}'); }

    json::Buffer& value(std::string_view name) {
        if (!first_) buffer_.append(',');
        first_ = false;
        json::append_utf8(buffer_, name);
        buffer_.append(':');
        return buffer_;
    }
    void text(std::string_view name, std::string_view text) {
        json::append_utf8(value(name), text);
    }
    void text_or_null(std::string_view name, std::string_view text_value) {
        if (text_value.empty()) {
            value(name).append("null");
        } else {
            text(name, text_value);
        }
    }
    void flag(std::string_view name, bool set) { value(name).append(set ? "true" : "false"); }
    void count(std::string_view name, std::size_t number) {
        json::append_integer(value(name), static_cast<std::int64_t>(number));
    }

private:
    json::Buffer& buffer_;
    bool first_ = true;
};

template <typename Range, typename Write>
void list(json::Buffer& buffer, const Range& range, Write write) {
    buffer.append('[');
    bool first = true;
    for (const auto& one : range) {
        if (!first) buffer.append(',');
        first = false;
        write(buffer, one);
    }
    buffer.append(']');
}

void texts(json::Buffer& buffer, std::span<const std::string_view> values) {
    list(buffer, values,
         [](json::Buffer& out, std::string_view one) { json::append_utf8(out, one); });
}

/// "string", "integer or string", ...
std::string type_name(std::uint16_t types) {
    constexpr std::string_view names[] = {"string", "integer", "number", "boolean",
                                          "array",  "object",  "file",   "null"};
    std::string text;
    for (unsigned bit = 0; bit < std::size(names); ++bit) {
        if ((unsigned{types} >> bit & 1U) == 0) continue;
        if (!text.empty()) text += " or ";
        text += names[bit];
    }
    return text;
}

void number(json::Buffer& buffer, std::optional<double> value) {
    buffer.append(value ? plain_number(*value) : "null");
}

std::string_view format_name(Format format) {
    constexpr std::string_view names[] = {"none",       "bitrate",   "time",
                                          "resolution", "languages", "name"};
    return names[static_cast<std::size_t>(format)];
}

void object_type(json::Buffer& buffer, const ObjectType& type);

void bounds(Members& members, const Field& one) {
    number(members.value("minimum"), one.minimum);
    number(members.value("maximum"), one.maximum);
    if (one.above_minimum) members.flag("exclusive_minimum", true);
    if (one.below_maximum) members.flag("exclusive_maximum", true);
    if (one.multiple_of != 0) json::append_integer(members.value("multiple_of"), one.multiple_of);
    constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
    if (one.min_length > 0) members.count("min_length", one.min_length);
    if (one.max_length < unlimited) members.count("max_length", one.max_length);
    if (one.min_items > 0) members.count("min_items", one.min_items);
    if (one.max_items < unlimited) members.count("max_items", one.max_items);
}

void choices(Members& members, const Field& one) {
    if (!one.integer_choices.empty()) {
        list(members.value("choices"), one.integer_choices, json::append_integer);
    } else if (!one.choices.empty()) {
        texts(members.value("choices"), one.choices);
    } else {
        members.value("choices").append("null");
    }
}

void describe_field(json::Buffer& buffer, const Field& one) {
    Members members(buffer);
    members.text("name", one.name);
    if (one.python() != one.name) members.text("python_name", one.python());
    members.text("type", type_name(one.types));
    members.flag("required", one.required);
    members.value("default").append(one.default_json.empty() ? "null" : one.default_json);
    bounds(members, one);
    choices(members, one);
    members.text_or_null("unit", one.unit);
    members.flag("extension", one.extension);
    if (one.format != Format::none) members.text("format", format_name(one.format));
    if (one.url) members.text("kind", "url");
    if (!one.schemes.empty()) texts(members.value("schemes"), one.schemes);
    if (!one.aliases.empty()) texts(members.value("aliases"), one.aliases);
    if (one.written_as_text) members.text("written_as", "string");
    if (!one.upstream_default.empty()) members.text("upstream_default", one.upstream_default);
    if (!one.media.empty()) members.text("media", one.media);
    if (!one.deprecated.empty()) members.text("deprecated", one.deprecated);
    if (one.object != nullptr) object_type(members.value("object"), *one.object);
    if (one.item != nullptr) {
        Members item(members.value("items"));
        item.text("type", type_name(one.item->types));
        if (one.item->object != nullptr) object_type(item.value("object"), *one.item->object);
        item.end();
    }
    members.text("title", one.title);
    members.text("doc", one.documentation);
    members.end();
}

void rule(json::Buffer& buffer, const Rule& one) {
    constexpr std::string_view names[] = {"exactly_one", "at_most_one",     "needs",
                                          "ascending",   "required_unless", "names_field"};
    Members members(buffer);
    members.text("rule", names[static_cast<std::size_t>(one.kind)]);
    texts(members.value("fields"), one.fields);
    members.end();
}

void fields_and_rules(Members& members, const ObjectType& type) {
    list(members.value("fields"), type.fields, describe_field);
    if (!type.rules.empty()) list(members.value("rules"), type.rules, rule);
}

void object_type(json::Buffer& buffer, const ObjectType& type) {
    Members members(buffer);
    members.text("name", type.name);
    members.text("doc", type.documentation);
    fields_and_rules(members, type);
    members.end();
}

/// How a server handles unknown fields.
std::string_view treatment(UnknownFields unknown) {
    static constexpr std::array<std::string_view, 3> names = {"refuse", "warn", "pass"};
    return names[static_cast<std::size_t>(unknown)];
}

void variant(json::Buffer& buffer, const Variant& one) {
    Members members(buffer);
    if (!one.id.empty()) members.text("id", one.id);
    members.text_or_null("model", one.model);
    if (!one.summary.empty()) members.text("summary", one.summary);
    members.text("encoding", one.encoding == Encoding::json ? "json" : "multipart");
    json::Buffer& accepts = members.value("accepts");
    accepts.append('[');
    if (one.accepts_json) accepts.append("\"json\"");
    if (one.accepts_json && one.accepts_multipart) accepts.append(',');
    if (one.accepts_multipart) accepts.append("\"multipart\"");
    accepts.append(']');
    if (!one.chosen_by.empty()) texts(members.value("chosen_by"), one.chosen_by);
    members.text("unknown_fields", treatment(one.body.unknown_fields));
    fields_and_rules(members, one.body);
    members.end();
}

void operation(json::Buffer& buffer, const Operation* one) {
    Members members(buffer);
    members.text("name", one->name);
    members.text("path", one->path);
    members.text("method", "POST");
    members.text("family", one->family);
    members.text("title", one->title);
    members.text("summary", one->summary);
    members.text("first", one->first);
    members.text("result", one->result);
    if (!one->stream_result.empty()) members.text("stream_result", one->stream_result);
    if (one->job) members.flag("job", true);
    if (!one->refused_fields.empty()) {
        texts(members.value("refused_fields"), one->refused_fields);
    }
    list(members.value("variants"), one->variants, variant);
    members.end();
}

}  // namespace

std::string describe(const Operation* only) {
    json::Buffer buffer;
    if (only != nullptr) {
        list(buffer, std::span(&only, 1), operation);
    } else {
        list(buffer, operations(), operation);
    }
    return std::string(buffer.view());
}

}  // namespace polymux::contract
