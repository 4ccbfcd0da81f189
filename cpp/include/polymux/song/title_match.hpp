// How much a text that somebody typed is like titles and artists: errors of typing count little.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace polymux::song {

/// Edits between two texts of code points: insertions, deletions, replacements, and exchanges of
/// two neighbours, no piece being edited twice. Bit-parallel, after H. Hyyrö, "A bit-vector
/// algorithm for computing Levenshtein and Damerau edit distances", Nordic Journal of Computing 10
/// (2003).
[[nodiscard]] std::size_t edit_distance(std::u32string_view one, std::u32string_view other);

/// A song as it is compared: folded, so without capitals and marks, words parted by one space.
struct FoldedTitle {
    std::u32string title;
    std::u32string artist;
};

struct RankedTitle {
    std::size_t index = 0;  ///< Among those that were given.
    float score = 0;        ///< 1 for the very title, 0 for nothing in common.
};

/// Those that are like the query, best first. Of equals those come first of which the artist is
/// named too; else they stay in their order.
///
/// A score is the best of: the likeness to the title, to the title and the artist in either order;
/// how well each word of the query is found among their words, in any order; for "title by artist",
/// the likeness of each half; and, for whoever is still typing, how much of the title the query is
/// the beginning of. Below `min_likeness` they are left out. Texts are compared up to 512 code
/// points.
[[nodiscard]] std::vector<RankedTitle> rank_titles(std::u32string_view query,
                                                   std::span<const FoldedTitle> titles,
                                                   float min_likeness);

}  // namespace polymux::song
