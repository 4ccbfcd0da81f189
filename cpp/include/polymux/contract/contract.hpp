// What the interface is: operations, the variants that a model selector chooses, their fields and
// rules.
//
//     const contract::Operation* operation = contract::find_operation("transcribe");
//     for (const contract::Field& field : operation->variants[0].body.fields) use(field.name);
//
// The tables are generated from contract/*.toml by scripts/generate; nothing here is edited by hand
// twice. All of it is constant data: views into it stay good for the life of the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace polymux::contract {

/// Types that a value may have, as bits: a field accepts any of several.
enum ValueType : std::uint16_t {
    type_string = 1U << 0U,
    type_integer = 1U << 1U,
    type_number = 1U << 2U,  ///< An integer will do too.
    type_boolean = 1U << 3U,
    type_array = 1U << 4U,
    type_object = 1U << 5U,
    type_file = 1U << 6U,  ///< Content of a file: a part of its own in multipart/form-data.
    type_null = 1U << 7U,
};

enum class Encoding : std::uint8_t { json, multipart };

/// What becomes of fields that the contract does not have.
enum class UnknownFields : std::uint8_t {
    refuse,  ///< An error, with the nearest known name.
    warn,    ///< Left out, and said.
    pass,    ///< Passed on as they are.
};

/// Texts with a form of their own.
enum class Format : std::uint8_t { none, bitrate, time, resolution, languages, name };

struct ObjectType;

/// One field of a request or of an object inside it.
struct Field {
    std::string_view name;              ///< On the wire.
    std::string_view python_name = {};  ///< In the Python methods; empty where it is the same.
    std::uint16_t types = 0;            ///< Bits of ValueType.
    bool required = false;
    bool extension = false;        ///< Not in the interface's text; optional, sent only when given.
    bool url = false;              ///< Can make the server fetch: goes through the guard.
    bool written_as_text = false;  ///< A number that JSON carries as a string.
    Format format = Format::none;
    std::optional<double> minimum = {};
    std::optional<double> maximum = {};
    bool above_minimum = false;  ///< The minimum itself is not allowed.
    bool below_maximum = false;  ///< The maximum itself is not allowed.
    std::int64_t multiple_of = 0;
    std::size_t min_length = 0;  ///< Of a text, in code points.
    std::size_t max_length = std::numeric_limits<std::size_t>::max();
    std::size_t min_items = 0;  ///< Of an array.
    std::size_t max_items = std::numeric_limits<std::size_t>::max();
    std::span<const std::string_view> choices = {};      ///< Of a text.
    std::span<const std::int64_t> integer_choices = {};  ///< Of an integer.
    std::span<const std::string_view> aliases = {};      ///< Other names that are understood.
    std::span<const std::string_view> schemes = {};      ///< That an address may have.
    const ObjectType* object = nullptr;                  ///< Of an object; null allows any.
    const Field* item = nullptr;                         ///< Of an array; null allows any.
    std::string_view default_json = {};                  ///< As JSON; empty where there is none.
    std::string_view upstream_default = {};              ///< What the model itself takes.
    std::string_view unit = {};
    std::string_view media = {};       ///< Of a file: image, audio or video.
    std::string_view deprecated = {};  ///< The field that took its place.
    std::string_view documentation = {};
    std::string_view title = {};  ///< A label for people.

    constexpr std::string_view python() const { return python_name.empty() ? name : python_name; }
};

/// A rule between the fields of one object.
struct Rule {
    enum class Kind : std::uint8_t {
        exactly_one,      ///< Exactly one of the fields is given.
        at_most_one,      ///< At most one of the fields is given.
        needs,            ///< The first is given only together with the second.
        ascending,        ///< The first is less than the second.
        required_unless,  ///< The first is required unless one of the others is there.
        names_field,      ///< The first's value is the name of a field that is then required.
    };
    Kind kind;
    std::span<const std::string_view> fields;
};

/// An object with known fields: a request's body, or an object inside it. At most 64 fields.
struct ObjectType {
    std::string_view name;
    std::string_view documentation;
    std::span<const Field> fields;
    std::span<const Rule> rules = {};
    UnknownFields unknown_fields = UnknownFields::pass;

    /// The field of that name or alias, or null. `hint` is where to look first: fields mostly come
    /// in the order of the contract.
    const Field* find(std::string_view wire_name, std::size_t hint = 0) const;
    std::size_t index_of(const Field& field) const {
        return static_cast<std::size_t>(&field - fields.data());
    }
};

/// One form of an operation's request.
struct Variant {
    std::string_view id;     ///< "A", "B", ...; empty where there is one only.
    std::string_view model;  ///< Value of the query parameter `model`; empty where there is none.
    std::string_view summary = {};
    Encoding encoding = Encoding::json;  ///< What a client sends.
    bool accepts_json = false;           ///< What a server takes.
    bool accepts_multipart = false;
    std::span<const std::string_view> chosen_by = {};  ///< Fields that make a client choose it.
    ObjectType body;

    bool accepts(Encoding other) const {
        return other == Encoding::json ? accepts_json : accepts_multipart;
    }
};

/// One operation: POST to `path`.
struct Operation {
    std::string_view name;    ///< The method's name: `transcribe`.
    std::string_view path;    ///< `/api/v1/modelhost/stt`.
    std::string_view family;  ///< chat, image, audio, video or text.
    std::string_view title;
    std::string_view summary;
    std::string_view first;  ///< The field that methods and commands take first.
    std::string_view result;
    std::string_view stream_result = {};
    bool job = false;  ///< The server makes a job of it, which can be read, watched and cancelled.
    std::span<const std::string_view> refused_fields = {};  ///< Names that are always an error.
    std::span<const Variant> variants;

    /// Whether the query parameter `model` chooses the variant.
    bool selects_model() const { return !variants.front().model.empty(); }
    /// The path's last segment, which the command line knows too.
    std::string_view alias() const { return path.substr(path.rfind('/') + 1); }
    /// The variant of that model, `owner/name` or `owner/name:version`; null if there is none.
    const Variant* find_variant(std::string_view model) const;
};

/// All operations, in the order of the interface's text.
std::span<const Operation* const> operations();

/// The operation of that method name, command, path (with or without `/api/v1/`) or alias; or null.
const Operation* find_operation(std::string_view name);

/// The known name nearest to a misspelt one, or empty when none is near.
std::string_view nearest_name(std::string_view misspelt, std::span<const Field> fields);

/// The contract as JSON: a list of `{path, method, variants: [{model, encoding, accepts,
/// fields}]}`. With an operation, a list of that one.
std::string describe(const Operation* only = nullptr);

}  // namespace polymux::contract
