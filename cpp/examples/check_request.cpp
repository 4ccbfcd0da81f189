// check_request OPERATION < BODY.json: checks a JSON request against the contract of the polymux
// API.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>

#include "polymux/contract/check.hpp"
#include "polymux/contract/json_body.hpp"

using namespace polymux;

int main(int argument_count, char** arguments) {
    const contract::Operation* const operation =
        argument_count == 2 ? contract::find_operation(arguments[1]) : nullptr;
    if (operation == nullptr) {
        std::fputs("usage: check_request OPERATION < BODY.json\noperations:\n", stderr);
        for (const contract::Operation* one : contract::operations()) {
            std::fprintf(stderr, "  %s\n", std::string(one->name).c_str());
        }
        return 2;
    }
    const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    const auto variant = contract::choose_variant(*operation, {}, contract::Encoding::json);
    contract::JsonReader reader;
    const auto body = reader.read(text);
    if (!variant || !body) {
        std::puts((variant ? body.error() : variant.error()).message.c_str());
        return 1;
    }
    const contract::Report report =
        contract::check(*operation, **variant, **body, contract::Side::server);
    for (const contract::Problem& problem : report.problems) std::puts(problem.message.c_str());
    if (report.ok()) std::puts("the request is valid");
    return report.ok() ? 0 : 1;
}
