// Made by scripts/generate from contract/; change it there.
// clang-format off
#include "contract/generated/operations.hpp"

namespace polymux::contract::generated {
namespace {

constexpr Field read_text_fields[] = {
    {.name = "file", .python_name = "image", .types = type_file, .required = true, .media = "image", .documentation = "The picture; a TIFF may have several pages."},
    {.name = "lang", .types = type_string, .extension = true, .format = Format::languages, .documentation = "Languages of the text, joined by plus: `eng`, `deu+fra`."},
};

constexpr Variant read_text_variants[] = {
    {.id = "",
     .model = "",
     .summary = "",
     .encoding = Encoding::multipart,
     .accepts_json = false,
     .accepts_multipart = true,
     .body = {.name = "read_text", .documentation = "Reads the text in a picture.",
              .fields = read_text_fields,
              .unknown_fields = UnknownFields::warn}},
};

}  // namespace

constinit const Operation read_text = {
    .name = "read_text",
    .path = "/api/v1/image2text",
    .family = "text",
    .title = "Image to text",
    .summary = "Reads the text in a picture.",
    .first = "file",
    .result = "OcrText",
    .variants = read_text_variants,
};

}  // namespace polymux::contract::generated
