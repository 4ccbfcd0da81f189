#include <doctest/doctest.h>

#include <string>

#include "polymux/text_parsing.hpp"

using namespace polymux;

TEST_SUITE("spellings") {
    TEST_CASE("integers are ASCII digits and nothing else") {
        CHECK(parse_integer("5")->value == 5);
        CHECK(parse_integer("+5")->value == 5);
        CHECK(parse_integer("-0012")->value == -12);
        CHECK(parse_integer("9223372036854775807")->fits);
        CHECK_FALSE(parse_integer("9223372036854775808")->fits);
        CHECK_FALSE(parse_integer(std::string(5000, '9'))->fits);
        for (const char* text : {"", "+", "-", "5.0", "1_000", " 5", "5 ", "0x10", "1e3",
                                 "\xEF\xBC\x91", "\xD9\xA5", "--5", "+-5"}) {
            CHECK_MESSAGE(!parse_integer(text), text);
        }
    }

    TEST_CASE("numbers are finite decimals") {
        CHECK(*parse_number("5") == 5.0);
        CHECK(*parse_number("-0.25") == -0.25);
        CHECK(*parse_number("+.5e+2") == 50.0);
        CHECK(*parse_number("3.") == 3.0);
        CHECK(*parse_number("1e-999") == 0.0);
        CHECK(*parse_number("0." + std::string(400, '0') + "1") == 0.0);
        for (const char* text : {"", ".", "e5", "1e", "1e+", "nan", "NaN", "inf", "-Infinity",
                                 "1e309", "1e999", "0x10", "1_0", " 1", "1 ", "1,5"}) {
            CHECK_MESSAGE(!parse_number(text), text);
        }
        CHECK_FALSE(parse_number(std::string(400, '9')));
    }

    TEST_CASE("switches have the words of forms, in any case") {
        for (const char* text :
             {"1", "t", "T", "TRUE", "true", "True", "tRuE", "yes", "YES", "on"}) {
            CHECK_MESSAGE(parse_boolean(text) == true, text);
        }
        for (const char* text : {"0", "f", "F", "FALSE", "false", "False", "no", "off", "Off"}) {
            CHECK_MESSAGE(parse_boolean(text) == false, text);
        }
        for (const char* text : {"", "2", "null", "y", "n", " true", "truee", "oui"}) {
            CHECK_MESSAGE(!parse_boolean(text), text);
        }
    }

    TEST_CASE("bitrates, times and resolutions are parsed in all notations") {
        CHECK(*parse_bits_per_second("128k") == 128000.0);
        CHECK(*parse_bits_per_second("1.5M") == 1.5e6);
        CHECK(*parse_bits_per_second("64000") == 64000.0);
        for (const char* text : {"", "k", "128kb", " 128k", "-1", "1e5", "nan", "inf"}) {
            CHECK_MESSAGE(!parse_bits_per_second(text), text);
        }
        CHECK(*parse_time("93.5") == 93.5);
        CHECK(*parse_time("1:33.5") == 93.5);
        CHECK(*parse_time("01:00:00") == 3600.0);
        CHECK(*parse_time("100:59:59.25") == 363599.25);
        for (const char* text :
             {"", ":", "1:60", "1:2:3:4", "60:00", "-1", "1e3", "1:", ":1", "1:1e1"}) {
            CHECK_MESSAGE(!parse_time(text), text);
        }
        CHECK(*parse_resolution("720p") == 720);
        CHECK(*parse_resolution("4320") == 4320);
        CHECK(*parse_resolution("best") == 0);
        CHECK(*parse_resolution("") == 0);
        for (const char* text :
             {"worst", "143", "4321", "720P", "720i", "p", "720 p", "1280x720", "00720"}) {
            CHECK_MESSAGE(!parse_resolution(text), text);
        }
    }
}
