#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "polymux/song/title_match.hpp"

using namespace polymux::song;

namespace {

/// A textbook implementation: one cell of the table after another.
std::size_t by_table(std::u32string_view one, std::u32string_view other) {
    std::vector<std::vector<std::size_t>> table(one.size() + 1,
                                                std::vector<std::size_t>(other.size() + 1));
    for (std::size_t row = 0; row <= one.size(); ++row) {
        for (std::size_t column = 0; column <= other.size(); ++column) {
            if (row == 0 || column == 0) {
                table[row][column] = row + column;
                continue;
            }
            const std::size_t change = one[row - 1] == other[column - 1] ? 0 : 1;
            std::size_t least = table[row - 1][column - 1] + change;
            least = std::min({least, table[row - 1][column] + 1, table[row][column - 1] + 1});
            if (row > 1 && column > 1 && one[row - 1] == other[column - 2] &&
                one[row - 2] == other[column - 1]) {
                least = std::min(least, table[row - 2][column - 2] + 1);
            }
            table[row][column] = least;
        }
    }
    return table[one.size()][other.size()];
}

std::u32string random_text(std::mt19937& random, std::size_t most, std::u32string_view letters) {
    std::u32string text(std::uniform_int_distribution<std::size_t>(0, most)(random), U' ');
    for (char32_t& code : text) {
        code = letters[std::uniform_int_distribution<std::size_t>(0, letters.size() - 1)(random)];
    }
    return text;
}

std::vector<std::size_t> order(std::u32string_view query, const std::vector<FoldedTitle>& songs,
                               float least = 0.55F) {
    std::vector<std::size_t> indices;
    for (const RankedTitle& one : rank_titles(query, songs, least)) indices.push_back(one.index);
    return indices;
}

}  // namespace

TEST_SUITE("title_match") {
    TEST_CASE("known distances") {
        CHECK(edit_distance(U"", U"") == 0);
        CHECK(edit_distance(U"", U"abc") == 3);
        CHECK(edit_distance(U"abc", U"") == 3);
        CHECK(edit_distance(U"kitten", U"sitting") == 3);
        CHECK(edit_distance(U"bohemian rhapsody", U"bohemain rapsody") == 2);
        CHECK(edit_distance(U"ab", U"ba") == 1);
        CHECK(edit_distance(U"東京", U"京東") == 1);
        // No piece is edited twice; otherwise the distance would be 2.
        CHECK(edit_distance(U"ca", U"abc") == 3);
    }

    TEST_CASE("distances equal those of the table, also across machine words") {
        std::mt19937 random(7);
        for (const std::size_t most : {8UL, 63UL, 64UL, 65UL, 130UL, 200UL}) {
            for (const std::u32string_view letters : {U"ab", U"abcdefgh ", U"aé東京\U0001F3B5"}) {
                for (int round = 0; round < 150; ++round) {
                    const std::u32string one = random_text(random, most, letters);
                    std::u32string other = random_text(random, most, letters);
                    if (round % 2 == 0 && one.size() > 2) {
                        other = one;
                        std::swap(other[one.size() / 2], other[one.size() / 2 - 1]);
                        other.erase(one.size() / 3, 1);
                    }
                    REQUIRE(edit_distance(one, other) == by_table(one, other));
                }
            }
        }
    }

    TEST_CASE("a swap across a machine word boundary is one edit") {
        std::u32string one(130, U'x');
        one[63] = U'a';
        one[64] = U'b';
        std::u32string other = one;
        std::swap(other[63], other[64]);
        CHECK(edit_distance(one, other) == 1);
    }

    TEST_CASE("the best match comes first") {
        const std::vector<FoldedTitle> songs = {{U"bohemian like you", U"the dandy warhols"},
                                                {U"bohemian rhapsody", U"queen"},
                                                {U"rhapsody in blue", U"george gershwin"},
                                                {U"yesterday", U"the beatles"}};
        CHECK(order(U"bohemian rhapsody", songs).front() == 1);
        CHECK(order(U"bohemain rapsody", songs).front() == 1);
        CHECK(order(U"queen bohemian rhapsody", songs).front() == 1);
        CHECK(order(U"rhapsody bohemian quen", songs).front() == 1);
        CHECK(order(U"gershwin rhapsody", songs).front() == 2);
        CHECK(order(U"yesterd", songs) == std::vector<std::size_t>{3});
        CHECK(order(U"nothing of this kind", songs).empty());
        CHECK(rank_titles(U"yesterday", songs, 0.55F).front().score == 1.0F);
    }

    TEST_CASE("a title by an artist matches that artist") {
        const std::vector<FoldedTitle> songs = {
            {U"burning ft orquestra do res do chao", U"wanda"},
            {U"burning by the river", U"nobody"},
            {U"burning tape loop 9", U"orquestra do res do chao"},
            {U"stand by me", U"ben e king"},
            {U"stand", U"me"}};
        CHECK(order(U"burning by orquestra do res do chao", songs).front() == 2);
        CHECK(order(U"burning by orqestra do res do chao", songs).front() == 2);
        CHECK(order(U"burning by the river", songs).front() == 1);
        CHECK(order(U"stand by me by ben e king", songs).front() == 3);
        CHECK(order(U"stand by me", songs).front() == 3);
        CHECK(order(U"stand by me", {songs[4], songs[3]}).front() == 1);
        CHECK(order(U"stand by", songs).front() == 3);
        CHECK(order(U" by ", {{U"by", U"x"}, {U"", U""}}, 0.1F) == std::vector<std::size_t>{0});
    }

    TEST_CASE("of equal matches, the one with a matching artist comes first") {
        const std::vector<FoldedTitle> songs = {
            {U"golden north", U"renee"}, {U"golden", U"north"}, {U"golden north", U""}};
        CHECK(order(U"golden north", songs) == std::vector<std::size_t>{1, 0, 2});
        CHECK(order(U"golse north", songs) == std::vector<std::size_t>{1, 0, 2});
        CHECK(order(U"golden", songs) == std::vector<std::size_t>{1, 0, 2});
    }

    TEST_CASE("equal matches keep their order, and those below the minimum are dropped") {
        const std::vector<FoldedTitle> songs(3, {U"love", U"x"});
        CHECK(order(U"love", songs) == std::vector<std::size_t>{0, 1, 2});
        CHECK(order(U"lovx", songs, 0.9F).empty());
    }

    TEST_CASE("empty and very long texts") {
        CHECK(order(U"", {{U"", U""}, {U"a", U""}}, 0.5F) == std::vector<std::size_t>{0});
        CHECK(order(U" ", {{U"   ", U" "}}, 2.0F).empty());
        const std::u32string large(100'000, U'a');
        CHECK(order(large, {{large, large}}).size() == 1);
    }
}
