#include "title_match.hpp"

#include <new>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

#include "polymux/song/title_match.hpp"

namespace polymux::bindings {
namespace {

using Pairs = std::vector<std::pair<std::u32string, std::u32string>>;

py::list rank_titles(const std::u32string& query, Pairs titles, float min_likeness) {
    std::vector<song::RankedTitle> ranked;
    bool out_of_memory = false;
    without_gil([&] {
        try {
            std::vector<song::FoldedTitle> folded;
            folded.reserve(titles.size());
            for (auto& [title, artist] : titles) {
                folded.push_back({.title = std::move(title), .artist = std::move(artist)});
            }
            ranked = song::rank_titles(query, folded, min_likeness);
        } catch (const std::bad_alloc&) {
            out_of_memory = true;
        }
    });
    if (out_of_memory) throw std::bad_alloc();
    py::list pairs;
    for (const song::RankedTitle& one : ranked) {
        pairs.append(py::make_tuple(one.index, one.score));
    }
    return pairs;
}

}  // namespace

void register_title_match(py::module_& module) {
    module.def("rank_titles", &rank_titles, py::arg("query"), py::arg("titles"), py::arg("least"));
}

}  // namespace polymux::bindings
