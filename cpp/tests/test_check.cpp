#include <doctest/doctest.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "polymux/contract/check.hpp"
#include "polymux/contract/form_body.hpp"
#include "polymux/contract/json_body.hpp"

using namespace polymux;
using namespace polymux::contract;

namespace {

Report check_json(std::string_view operation_name, std::string_view body, Side side = Side::server,
                  std::string_view model = {}) {
    const Operation& operation = *find_operation(operation_name);
    const Variant& variant =
        model.empty() ? operation.variants.front() : *operation.find_variant(model);
    JsonReader reader;
    const auto value = reader.read(body);
    REQUIRE(value);
    return check(operation, variant, **value, side);
}

/// The only problem of a body.
std::string problem(std::string_view operation, std::string_view body, Side side = Side::server) {
    const Report report = check_json(operation, body, side);
    CHECK(report.count == 1);
    return report.ok() ? "" : report.problems.front().message;
}

Report check_form(std::string_view operation_name, const std::vector<FormPart>& parts,
                  std::size_t variant = 0) {
    const Operation& operation = *find_operation(operation_name);
    return check(operation, operation.variants[variant], FormBody(parts), Side::server);
}

std::string form_problem(std::string_view operation, const std::vector<FormPart>& parts,
                         std::size_t variant = 0) {
    const Report report = check_form(operation, parts, variant);
    CHECK(report.count == 1);
    return report.ok() ? "" : report.problems.front().message;
}

constexpr const char* hello = R"({"model":"m","messages":[{"role":"user","content":"hello"}]})";

}  // namespace

TEST_SUITE("check") {
    TEST_CASE("valid requests pass") {
        CHECK(check_json("chat", hello).ok());
        CHECK(check_json("chat", R"({"model":"m","messages":[
            {"role":"system","content":"be short"},
            {"role":"user","content":[{"type":"text","text":"what?"},
                {"type":"image_url","image_url":{"url":"https://pictures.example/a.png","detail":"low"}}]},
            {"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function",
                "function":{"name":"f","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"1","content":"4"}],
            "stop":["a","b"],"temperature":0,"top_p":1,"seed":-5,"something_new":{"a":[1]},
            "tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],
            "tool_choice":{"type":"function","function":{"name":"f"}},
            "response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{}}}})")
                  .ok());
        CHECK(check_json("search_music", R"({"song":"x","limit":"5"})").ok());
        CHECK(check_json("search_music", R"({"song":"x","limit":5})").ok());
        CHECK(
            check_json("generate_image", R"({"prompt":"x","width":null,"guidance_scale":7})").ok());
        CHECK(check_json("download_video", R"({"url":"https://a.example/v","resolution":"720p"})")
                  .ok());
    }

    TEST_CASE("each problem names field, value and rule") {
        CHECK(problem("chat", R"({"model":"m","messages":[]})") == "messages: must not be empty");
        CHECK(problem("chat", R"({"model":"m"})") == "messages: is missing");
        CHECK(problem("chat", R"({"model":"m","messages":null})") ==
              "messages=null: must be an array");
        CHECK(problem("chat", R"({"model":"","messages":[{"role":"user","content":"x"}]})") ==
              "model: must not be empty");
        CHECK(problem("chat", R"({"model":"m","messages":[{"role":"king","content":"x"}]})") ==
              "messages[0].role=\"king\": must be one of \"system\", \"user\", \"assistant\", "
              "\"tool\", \"function\", \"developer\"");
        CHECK(problem("chat", R"({"model":"m","messages":[{"role":"user"}]})") ==
              "messages[0]: content: is missing");
        CHECK(problem("chat", R"({"model":"m","messages":[{"role":"user","content":null}]})") ==
              "messages[0]: content: is missing");
        CHECK(problem(
                  "chat",
                  R"({"model":"m","stream":"true","messages":[{"role":"user","content":"x"}]})") ==
              "stream=\"true\": must be true or false");
        CHECK(
            problem("chat", R"({"model":"m","n":9,"messages":[{"role":"user","content":"x"}]})") ==
            "n=9: must be from 1 to 8");
        CHECK(
            problem(
                "chat",
                R"({"model":"m","temperature":true,"messages":[{"role":"user","content":"x"}]})") ==
            "temperature=true: must be a number");
        CHECK(
            problem(
                "chat",
                R"({"model":"m","messages":[{"role":"user","content":[{"type":"image_url"}]}]})") ==
            "messages[0].content[0]: image_url: is missing, but type requires it");
        CHECK(problem("generate_image", R"({"prompt":"x","width":1001})") ==
              "width=1001: must be a multiple of 8; the nearest are 1000 and 1008");
        CHECK(problem("generate_image", R"({"prompt":"x","width":64})") ==
              "width=64: must be from 256 to 1280 px");
        CHECK(problem("generate_image", R"({"prompt":"x","width":512.5})") ==
              "width=512.5: must be an integer, in px");
        CHECK(problem("search_music", R"({"song":"x","limit":"1e3"})") ==
              "limit=\"1e3\": must be from 1 to 50");
        CHECK(problem("search_music", R"({"song":"x","limit":51})") ==
              "limit=51: must be from 1 to 50");
        CHECK(problem("download_video", R"({"url":"file:///etc/passwd"})") ==
              "url=\"file:///etc/passwd\": must be a URL: http://... or https://...");
    }

    TEST_CASE("a whole number is an integer, however it is written") {
        const auto integer_in = [](std::string_view name, const ValueSource& body) {
            std::int64_t found = 0;
            const Operation& operation = *find_operation(name);
            const Report report = check(
                operation, operation.variants[0], body, Side::server,
                [&found](const Accepted& accepted) {
                    if (accepted.number && accepted.number->is_integer) {
                        found = accepted.number->integer;
                    }
                },
                [](std::string_view, const ValueSource&) {});
            CHECK(report.ok());
            return found;
        };
        for (const char* number : {"5.0", "0.5e1", "50e-1"}) {
            JsonReader reader;
            const auto body =
                reader.read(R"({"prompt":"x","seed":)" + std::string(number) + R"(})");
            CHECK(integer_in("generate_image", **body) == 5);
            const std::vector<FormPart> parts = {{.name = "prompt", .text = "x"},
                                                 {.name = "seed", .text = number}};
            CHECK(integer_in("generate_video", FormBody(parts)) == 5);
        }
        CHECK(problem("generate_image", R"({"prompt":"x","width":1001.0})") ==
              "width=1001.0: must be a multiple of 8; the nearest are 1000 and 1008");
        for (const char* number : {"1e19", "9223372036854775808.0", "-1e300"}) {
            CHECK(
                problem("generate_image", R"({"prompt":"x","seed":)" + std::string(number) + R"(})")
                    .ends_with("must be an integer of at most 64 bits"));
        }
    }

    TEST_CASE("an empty text is not set, unless the field accepts any text") {
        for (const Side side : {Side::server, Side::client}) {
            const auto given = [side](const char* operation, std::string_view body) {
                return check_json(operation, body, side);
            };
            CHECK(given("download_video", R"({"url":"http://a.example/","resolution":""})").ok());
            CHECK(given("search_music", R"({"song":"x","limit":"","proxy":""})").ok());
            CHECK(given("generate_image", R"({"prompt":"x","scheduler":"","negative_prompt":""})")
                      .absent == std::vector<std::string>{"scheduler"});
            CHECK(problem("search_music", R"({"song":""})", side) == "song: must not be empty");
            CHECK(problem("download_video", R"({"url":""})", side) == "url: must not be empty");
            CHECK(problem("generate_image", R"({"prompt":"x","width":""})", side) ==
                  "width=\"\": must be an integer, in px");
            // Inside the body's objects it is a text like others.
            CHECK(problem("chat", R"({"model":"m","messages":[{"role":"","content":""}]})", side)
                      .starts_with("messages[0].role=\"\": must be one of"));
        }
        const Report report = check_form("generate_video", {{.name = "prompt", .text = "x"},
                                                            {.name = "negative_prompt", .text = ""},
                                                            {.name = "video_model", .text = ""},
                                                            {.name = "width", .text = ""},
                                                            {.name = "init_video", .text = ""}});
        CHECK(report.ok());
        CHECK(report.absent == std::vector<std::string>{"video_model", "width", "init_video"});
        CHECK(form_problem("generate_video", {{.name = "prompt", .text = ""}}) ==
              "prompt: must not be empty");
    }

    TEST_CASE("steering fields are refused on chat, others passed on") {
        for (const char* name : {"api_base", "base_url", "api_key", "headers", "extra_headers",
                                 "proxy", "organization"}) {
            const std::string body =
                std::string(R"({"model":"m","messages":[{"role":"user","content":"x"}],")") + name +
                R"(":"y"})";
            CHECK(problem("chat", body) == std::string(name) + ": cannot be set by clients");
        }
        std::string passed;
        const Operation& operation = *find_operation("chat");
        JsonReader reader;
        const auto body =
            reader.read(R"({"model":"m","messages":[{"role":"user","content":"x"}],"min_p":0.1})");
        const Report report = check(
            operation, operation.variants[0], **body, Side::server, [](const Accepted&) {},
            [&passed](std::string_view name, const ValueSource&) { passed += name; });
        CHECK(report.ok());
        CHECK(passed == "min_p");
    }

    TEST_CASE("hand_on delivers the same values as check") {
        for (const auto& [name, body] :
             {std::pair{"chat", R"({"other":[1],"messages":[{"role":"user","content":"x"}],)"
                                R"("temperature":null,"stream":true,"model":"m","more":{"a":1}})"},
              std::pair{"search_music", R"({"song":"x","limit":"5","other":1})"}}) {
            const Operation& operation = *find_operation(name);
            const Variant& variant = operation.variants.front();
            JsonReader reader;
            const auto value = reader.read(body);
            REQUIRE(value);
            std::array<std::vector<std::string>, 2> seen;
            std::size_t way = 0;
            const auto accept = [&](const Accepted& accepted) {
                seen[way].push_back(
                    std::string(accepted.field.name) +
                    (accepted.number ? '=' + std::to_string(accepted.number->integer) : ""));
            };
            const auto pass_on = [&](std::string_view member, const ValueSource&) {
                seen[way].push_back("+" + std::string(member));
            };
            REQUIRE(check(operation, variant, **value, Side::server, accept, pass_on).ok());
            way = 1;
            hand_on(variant, **value, accept, pass_on);
            CHECK(seen[0].size() >= 2);
            CHECK(seen[0] == seen[1]);
        }
    }

    TEST_CASE("numbers that are passed through must fit") {
        CHECK(
            problem(
                "chat",
                R"({"model":"m","messages":[{"role":"user","content":"x"}],"min_k":9223372036854775808})") ==
            "min_k=an integer beyond 64 bits: must be an integer of at most 64 bits");
        CHECK(
            problem(
                "chat",
                R"({"model":"m","messages":[{"role":"user","content":"x"}],"a":[{"b":18446744073709551615}]})") ==
            "a[0].b=an integer beyond 64 bits: must be an integer of at most 64 bits");
    }

    TEST_CASE("unknown fields: an error for a client, a warning on a server") {
        CHECK(problem("search_music", R"({"song":"x","limt":5})", Side::client) ==
              "limt: unknown field (did you mean limit?)");
        const Report report = check_json("search_music", R"({"song":"x","limt":5})");
        CHECK(report.ok());
        REQUIRE(report.warnings.size() == 1);
        CHECK(report.warnings[0] == "limt: unknown field (did you mean limit?)");
    }

    TEST_CASE("names that are there twice are refused, wherever they are") {
        CHECK(problem("search_music", R"({"song":"x","song":"x"})") == "song: duplicate field");
        CHECK(problem("search_music", R"({"song":"x","a":1,"b":2,"a":3})") == "a: duplicate field");
        CHECK(problem("generate_image",
                      R"({"prompt":"x","num_inference_steps":4,"num_inferences_steps":4})") ==
              "num_inferences_steps: duplicate field");
        CHECK(
            problem(
                "chat",
                R"({"model":"m","messages":[{"role":"user","content":"x","z":{"a":[{"q":1,"q":2}]}}]})") ==
            "messages[0].z.a[0].q: duplicate field");
    }

    TEST_CASE("all problems are reported at once, and a long list is shortened") {
        const Report report =
            check_json("generate_image", R"({"width":1,"height":"x","num_outputs":0,"seed":1.5})");
        CHECK(report.count == 5);
        const std::string text = report.message(*find_operation("generate_image"));
        for (const char* part : {"5 problems", "width=1", "height=\"x\"", "num_outputs=0",
                                 "seed=1.5", "prompt: is missing"}) {
            CHECK_MESSAGE(text.find(part) != std::string::npos, text);
        }
        std::string many = R"({"model":"m","messages":[)";
        for (int index = 0; index < 1000; ++index) many += R"({"role":"user","content":5},)";
        many.back() = ']';
        const Report long_report = check_json("chat", many + "}");
        CHECK(long_report.count == 1000);
        CHECK(long_report.problems.size() == Report::max_problems);
        const std::string long_text = long_report.message(*find_operation("chat"));
        CHECK(long_text.size() <= 1900);
        CHECK(long_text.ends_with("and 980 more"));
    }

    TEST_CASE("passwords in URLs are hidden, long values are shortened") {
        const std::string text =
            problem("search_music", R"({"song":"x","proxy":"ftp://user:secret@proxy.example:1"})");
        CHECK(text.find("secret") == std::string::npos);
        CHECK(text.find("***@proxy.example") != std::string::npos);
        const std::string body = R"({"song":")" + std::string(10, 'x') + R"(","limit":")" +
                                 std::string(100'000, '9') + R"("})";
        CHECK(problem("search_music", body).size() < 200);
    }

    TEST_CASE("forms: numbers and booleans are parsed from text") {
        CHECK(check_form("generate_video", {{.name = "prompt", .text = "x"},
                                            {.name = "fps", .text = "10"},
                                            {.name = "init_weight", .text = "0.5"},
                                            {.name = "remove_watermark", .text = "Off"},
                                            {.name = "width", .text = ""},
                                            {.name = "init_video", .is_file = true}})
                  .ok());
        CHECK(form_problem("generate_video",
                           {{.name = "prompt", .text = "x"}, {.name = "fps", .text = "ten"}}) ==
              "fps=\"ten\": must be an integer, in frames/s");
        CHECK(form_problem("generate_video",
                           {{.name = "prompt", .text = "x"}, {.name = "fps", .text = "5.5"}}) ==
              "fps=\"5.5\": must be an integer, in frames/s");
        CHECK(form_problem("generate_video", {{.name = "prompt", .text = "x"},
                                              {.name = "seed", .text = "9223372036854775808"}}) ==
              "seed=\"9223372036854775808\": must be an integer of at most 64 bits");
        CHECK(form_problem("generate_video", {{.name = "prompt", .text = "x"},
                                              {.name = "remove_watermark", .text = "2"}}) ==
              "remove_watermark=\"2\": must be true or false");
        CHECK(form_problem("generate_video", {}) == "prompt: is missing");
        CHECK(form_problem("generate_video", {{.name = "prompt", .text = "x"},
                                              {.name = "init_video", .text = "x"}}) ==
              "init_video: must be a file, not text");
        CHECK(form_problem("generate_video", {{.name = "prompt", .is_file = true}}) ==
              "prompt=a file: must be a string");
    }

    TEST_CASE("rules between fields") {
        CHECK(form_problem("transcribe", {{.name = "task", .text = "translate"}}) ==
              "one of audio or url is required");
        CHECK(form_problem("transcribe", {{.name = "audio", .is_file = true},
                                          {.name = "url", .text = "http://a.example/"}}) ==
              "only one of audio and url can be used");
        CHECK(form_problem("generate_image",
                           {{.name = "prompt", .text = "x"}, {.name = "mask", .is_file = true}},
                           1) == "mask: requires image");
        CHECK(form_problem("convert_to_mp3", {{.name = "file", .is_file = true},
                                              {.name = "start", .text = "1:00"},
                                              {.name = "end", .text = "59.5"}}) ==
              "start: must be less than end (got 60 and 59.5)");
        CHECK(form_problem("convert_to_mp3", {{.name = "file", .is_file = true},
                                              {.name = "bitrate", .text = "128k"},
                                              {.name = "vbr_quality", .text = "2"}}) ==
              "only one of bitrate and vbr_quality can be used");
        CHECK(form_problem("convert_to_mp3", {{.name = "file", .is_file = true},
                                              {.name = "bitrate", .text = "1k"}}) ==
              "bitrate=\"1k\": must be from 8000 to 320000 bit/s");
        CHECK(form_problem("convert_to_mp3", {{.name = "file", .is_file = true},
                                              {.name = "sample_rate", .text = "44000"}}) ==
              "sample_rate=\"44000\": must be one of 8000, 11025, 12000, 16000, 22050, 24000, "
              "32000, 44100, 48000 Hz");
        CHECK(form_problem("convert_to_mp3", {{.name = "file", .is_file = true},
                                              {.name = "vbr_quality", .text = "10"}}) ==
              "vbr_quality=\"10\": must be at least 0 and below 10");
    }

    TEST_CASE("the selector is required if several models fit") {
        const Operation& images = *find_operation("generate_image");
        CHECK((*choose_variant(images, {}, Encoding::json))->id == "A");
        CHECK_FALSE(choose_variant(images, {}, Encoding::multipart));
        CHECK_FALSE(choose_variant(images, "", Encoding::json));
        CHECK_FALSE(choose_variant(images, "nobody/nothing", Encoding::json));
        CHECK((*choose_variant(*find_operation("stt"), {}, Encoding::multipart))->model ==
              "turian/insanely-fast-whisper-with-video");
        CHECK_FALSE(choose_variant(*find_operation("imageupscale"), {}, Encoding::multipart));
        const auto refused = choose_variant(*find_operation("chat"), {}, Encoding::multipart);
        REQUIRE_FALSE(refused);
        CHECK(refused.error().code == ErrorCode::unsupported_encoding);
        CHECK(refused.error().message.find("multipart/form-data") != std::string::npos);
    }

    TEST_CASE("a client's fields select the variant if no model is named") {
        const auto chosen = [](const char* operation, std::optional<std::string_view> model,
                               std::string_view given) {
            const auto is_given = [given](std::string_view field) { return field == given; };
            const auto variant = choose_variant(*find_operation(operation), model, is_given);
            return variant ? std::string((*variant)->id) : variant.error().message;
        };
        CHECK(chosen("generate_image", {}, "prompt") == "A");
        CHECK(chosen("generate_image", {}, "mask") == "B");
        CHECK(chosen("generate_image", "bytedance/sdxl-lightning-4step", "mask") == "A");
        CHECK(chosen("upscale_image", {}, "image") == "A");
        CHECK(chosen("upscale_image", {}, "face_enhance") == "B");
        CHECK(chosen("search_music", {}, "song").empty());
        CHECK(chosen("generate_image", "", "").starts_with("generate_image: unknown model"));
        CHECK(chosen("search_music", "x", "song")
                  .starts_with("search_music: no model can be selected"));
    }

    TEST_CASE("bodies that are not JSON are refused with a reason") {
        JsonReader reader;
        for (const char* body :
             {"", " ", "{", R"({"a":1,})", "{'a':1}", R"({"a":1} x)", "{} {}", "nul",
              R"({"a":NaN})", R"({"a":Infinity})", R"({"a":1e999})",
              R"({"a":18446744073709551616})", R"({"a":"\ud800"})", "{\"a\":\"\x01\"}",
              "{\"a\":\"\xC0\xAF\"}", "\xFF\xFE", R"({"a":01})"}) {
            const auto value = reader.read(body);
            CHECK_MESSAGE(!value, body);
            if (!value) CHECK(value.error().message.starts_with("the request's body "));
        }
        CHECK(reader.read("\xEF\xBB\xBF{}"));
        CHECK_FALSE(reader.read(std::string(100'000, '[')));
        CHECK(reader.read(std::string(200, '[') + '1' + std::string(200, ']')));
        CHECK_FALSE(reader.read(std::string(201, '[') + '1' + std::string(201, ']')));
        CHECK_FALSE(reader.read("[1,2,3]", 5));
        for (const char* body : {"[]", "\"x\"", "1", "null", "true"}) {
            CHECK(problem("search_music", body).starts_with("the request's body must be a JSON"));
        }
    }
}
