// The polymux API as data: operations, the variants that a model selects, their fields and rules.
//
//     const contract::Operation* operation = contract::find_operation("transcribe");
//     for (const contract::Field& field : operation->variants[0].body.fields) use(field.name);
//
// scripts/generate makes the tables from contract/*.toml. All data is constant: views into it stay
// valid for the life of the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace polymux::contract {

/// Types that a value may have, as bits. A field can accept several types.
enum ValueType : std::uint16_t {
    type_string = 1U << 0U,
    type_integer = 1U << 1U,
    type_number = 1U << 2U,  ///< Also accepts an integer.
    type_boolean = 1U << 3U,
    type_array = 1U << 4U,
    type_object = 1U << 5U,
    type_file = 1U << 6U,  ///< Content of a file: a separate part in multipart/form-data.
    type_null = 1U << 7U,
};

enum class Encoding : std::uint8_t { json, multipart };

/// How to handle unknown fields.
enum class UnknownFields : std::uint8_t {
    refuse,  ///< An error that names the nearest known field.
    warn,    ///< Dropped, with a warning.
    pass,    ///< Passed through unchanged.
};

/// Text formats.
enum class Format : std::uint8_t { none, bitrate, time, resolution, languages, name };

struct ObjectType;

/// One field of a request or of an object inside it.
struct Field {
    std::string_view name;              ///< Name on the wire.
    std::string_view python_name = {};  ///< Name in the Python methods; empty if it is the same.
    std::uint16_t types = 0;            ///< Bits of ValueType.
    bool required = false;
    bool extension = false;        ///< A polymux extension: optional, sent only when given.
    bool url = false;              ///< Can make the server fetch a URL: SSRF protection applies.
    bool written_as_text = false;  ///< A number that JSON carries as a string.
    Format format = Format::none;
    std::optional<double> minimum = {};
    std::optional<double> maximum = {};
    bool above_minimum = false;  ///< The minimum itself is not allowed.
    bool below_maximum = false;  ///< The maximum itself is not allowed.
    std::int64_t multiple_of = 0;
    std::size_t min_length = 0;  ///< For texts, in code points.
    std::size_t max_length = std::numeric_limits<std::size_t>::max();
    std::size_t min_items = 0;  ///< For arrays.
    std::size_t max_items = std::numeric_limits<std::size_t>::max();
    std::span<const std::string_view> choices = {};      ///< For texts.
    std::span<const std::int64_t> integer_choices = {};  ///< For integers.
    std::span<const std::string_view> aliases = {};      ///< Other accepted names.
    std::span<const std::string_view> schemes = {};      ///< Allowed URL schemes.
    const ObjectType* object = nullptr;                  ///< For objects; null allows any.
    const Field* item = nullptr;                         ///< For arrays; null allows any.
    std::string_view default_json = {};                  ///< As JSON; empty if there is no default.
    std::string_view upstream_default = {};              ///< The model's default.
    std::string_view unit = {};
    std::string_view media = {};       ///< For files: image, audio or video.
    std::string_view deprecated = {};  ///< Name of the replacement field.
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
        required_unless,  ///< The first is required unless one of the other fields is given.
        names_field,      ///< The first's value is the name of a field, which is then required.
    };
    Kind kind;
    std::span<const std::string_view> fields;
};

/// An object with known fields: the body of a request, or an object inside it. At most 64 fields.
struct ObjectType {
    std::string_view name;
    std::string_view documentation;
    std::span<const Field> fields;
    std::span<const Rule> rules = {};
    UnknownFields unknown_fields = UnknownFields::pass;

    /// Returns the field with that name or alias, or null. The search starts at index `hint`,
    /// because fields mostly arrive in the order of the contract.
    const Field* find(std::string_view wire_name, std::size_t hint = 0) const;
    std::size_t index_of(const Field& field) const {
        return static_cast<std::size_t>(&field - fields.data());
    }
};

/// One form of an operation's request.
struct Variant {
    std::string_view id;     ///< "A", "B", ...; empty if there is only one variant.
    std::string_view model;  ///< Value of the query parameter `model`; empty if unused.
    std::string_view summary = {};
    Encoding encoding = Encoding::json;  ///< The encoding that a client sends.
    bool accepts_json = false;           ///< Whether a server also accepts JSON.
    bool accepts_multipart = false;
    std::span<const std::string_view> chosen_by = {};  ///< Fields that select this variant.
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
    std::string_view first;  ///< The first positional argument of methods and commands.
    std::string_view result;
    std::string_view stream_result = {};
    bool job = false;  ///< The server creates a job that clients can read, watch and cancel.
    std::span<const std::string_view> aliases = {};         ///< Other names of the method.
    std::span<const std::string_view> refused_fields = {};  ///< Names that are always an error.
    std::span<const Variant> variants;

    bool selects_model() const { return !variants.front().model.empty(); }
    /// The last segment of the path, also an alias in the command line.
    std::string_view alias() const { return path.substr(path.rfind('/') + 1); }
    /// Finds the variant of a model, `owner/name` or `owner/name:version`. Returns null if unknown.
    const Variant* find_variant(std::string_view model) const;
};

/// All operations, in the order of the API specification.
std::span<const Operation* const> operations();

/// Finds an operation by method name, command, path (with or without `/api/v1/`) or alias. Returns
/// null if unknown.
const Operation* find_operation(std::string_view name);

/// Returns the known name that is nearest to a misspelled one, or an empty text if none is near.
std::string_view nearest_name(std::string_view misspelt, std::span<const Field> fields);

/// Returns the contract as JSON: a list of `{path, method, variants: [{model, encoding, accepts,
/// fields}]}`. If `only` is given, the list has that operation alone.
std::string describe(const Operation* only = nullptr);

}  // namespace polymux::contract
