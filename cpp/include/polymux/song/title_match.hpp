// How similar a typed text is to titles and artists. Typing errors count little.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace polymux::song {

/// Edits between two texts of code points: insertions, deletions, replacements, and swaps of two
/// neighbors, without editing any piece twice. Bit-parallel, after H. Hyyrö, "A bit-vector
/// algorithm for computing Levenshtein and Damerau edit distances", Nordic Journal of Computing 10
/// (2003).
[[nodiscard]] std::size_t edit_distance(std::u32string_view one, std::u32string_view other);

/// A song as compared: folded to text without capitals and diacritics, words separated by one
/// space.
struct FoldedTitle {
    std::u32string title;
    std::u32string artist;
};

struct RankedTitle {
    std::size_t index = 0;  ///< Index in the input.
    float score = 0;        ///< 1 for the exact title, 0 for nothing in common.
};

/// Returns the titles similar to the query, best first. At equal scores, those with a matching
/// artist come first; otherwise the order stays.
///
/// A score is the best of:
/// - the similarity to the title, and to the title and the artist in either order;
/// - how well each word of the query matches one of their words, in any order;
/// - for "title by artist", the similarity of each half;
/// - for incomplete input, how much of the title the query covers as a prefix.
///
/// Scores below `min_likeness` are dropped. Texts are compared up to 512 code points.
[[nodiscard]] std::vector<RankedTitle> rank_titles(std::u32string_view query,
                                                   std::span<const FoldedTitle> titles,
                                                   float min_likeness);

}  // namespace polymux::song
