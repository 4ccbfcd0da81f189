#include <doctest/doctest.h>

#include <set>
#include <string>

#include "polymux/contract/contract.hpp"
#include "polymux/contract/json_body.hpp"

using namespace polymux;
using namespace polymux::contract;

TEST_SUITE("contract") {
    TEST_CASE("the fourteen operations of the API exist, in order") {
        std::string paths;
        for (const Operation* operation : operations())
            paths += std::string(operation->path) + '\n';
        CHECK(paths ==
              "/api/v1/fastllm/chatcompletion\n/api/v1/freellm\n/api/v1/musicsearch\n"
              "/api/v1/modelhost/imagegeneration\n/api/v1/modelhost/imageupscale\n"
              "/api/v1/modelhost/stt\n/api/v1/modelhost/videogeneration\n"
              "/api/v1/modelhost/musicgeneration\n/api/v1/songid\n/api/v1/downloadvideo\n"
              "/api/v1/videosummarization\n/api/v1/downloadmusic\n/api/v1/convert2mp3\n"
              "/api/v1/image2text\n");
    }

    TEST_CASE("an operation is found by every accepted name") {
        const Operation* const operation = find_operation("transcribe");
        REQUIRE(operation != nullptr);
        for (const char* name : {"/api/v1/modelhost/stt", "modelhost/stt", "stt"}) {
            CHECK(find_operation(name) == operation);
        }
        CHECK(find_operation("convert-to-mp3") == find_operation("convert2mp3"));
        CHECK(find_operation("ocr") == find_operation("read-text"));
        CHECK(find_operation("nothing") == nullptr);
        CHECK(find_operation("") == nullptr);
    }

    TEST_CASE("no name refers to two operations or two fields") {
        std::set<std::string_view> names;
        for (const Operation* operation : operations()) {
            CHECK(names.insert(operation->name).second);
            CHECK(names.insert(operation->alias()).second);
            for (const std::string_view alias : operation->aliases) {
                CHECK(names.insert(alias).second);
            }
            for (const Variant& variant : operation->variants) {
                std::set<std::string_view> fields;
                for (const Field& field : variant.body.fields) {
                    CHECK(fields.insert(field.name).second);
                    for (const std::string_view alias : field.aliases) {
                        CHECK(fields.insert(alias).second);
                        CHECK(variant.body.find(alias) == &field);
                    }
                }
            }
        }
    }

    TEST_CASE("models choose variants, with or without a version") {
        const Operation& images = *find_operation("generate_image");
        CHECK(images.find_variant("lorenzomarines/astra")->id == "B");
        CHECK(images.find_variant("lorenzomarines/astra:6ce68112bcae")->id == "B");
        CHECK(images.find_variant("lorenzomarines/astr") == nullptr);
        CHECK(images.find_variant("") == nullptr);
        CHECK_FALSE(find_operation("chat")->selects_model());
    }

    TEST_CASE("a misspelled field has a nearest name, a different one has none") {
        const auto& fields = find_operation("generate_image")->variants[1].body.fields;
        CHECK(nearest_name("promt", fields) == "prompt");
        CHECK(nearest_name("hieght", fields) == "height");
        CHECK(nearest_name("negative_promt", fields) == "negative_prompt");
        CHECK(nearest_name("zzzzzz", fields).empty());
        CHECK(nearest_name("", fields).empty());
        CHECK(nearest_name(std::string(100'000, 'p'), fields).empty());
    }

    TEST_CASE("the description is JSON that polymux can parse") {
        JsonReader reader;
        const std::string all = describe();
        const auto value = reader.read(all);
        REQUIRE(value);
        CHECK((*value)->type() == type_array);
        CHECK((*value)->size() == 14);
        CHECK(describe(find_operation("songid")).find("\"path\":\"/api/v1/songid\"") !=
              std::string::npos);
    }
}
