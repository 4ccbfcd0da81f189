// Made by scripts/generate from contract/; do not edit.
// clang-format off
#include "contract/generated/operations.hpp"

namespace polymux::contract::generated {
namespace {

constexpr Field read_text_fields[] = {
    {.name = "file", .python_name = "image", .types = type_file, .required = true, .media = "image", .documentation = "Image with the text. A TIFF file may have several pages.", .title = "Image"},
    {.name = "lang", .types = type_string, .extension = true, .format = Format::languages, .documentation = "Languages of the text, such as `eng`, or `deu+fra` for several.", .title = "Languages"},
};

constexpr Variant read_text_variants[] = {
    {.id = "",
     .model = "",
     .summary = "",
     .encoding = Encoding::multipart,
     .accepts_json = false,
     .accepts_multipart = true,
     .body = {.name = "read_text", .documentation = "Extract the text in an image (OCR).",
              .fields = read_text_fields,
              .unknown_fields = UnknownFields::warn}},
};

constexpr std::string_view read_text_aliases[] = {"ocr"};
}  // namespace

constinit const Operation read_text = {
    .name = "read_text",
    .path = "/api/v1/image2text",
    .family = "text",
    .title = "Text recognition",
    .summary = "Extract the text in an image (OCR).",
    .first = "file",
    .result = "OcrText",
    .aliases = read_text_aliases,
    .variants = read_text_variants,
};

}  // namespace polymux::contract::generated
