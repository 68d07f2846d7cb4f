// Row classes: which distances below a row's largest exponent are likely, and so how it is coded.
//
// Journey    row_code <- [row_classes]
// Invariant  these tables are part of the stored format: they never change under one codec's number
// Not here   how a class becomes bits (store/codec/row_code.h)
//
// The exponents of a channel with one peak fall off on both sides of it: below, by half with each
// step, since values lie densely around 0; above, faster. A class says how wide the peak is (the
// number of distances told by `planes` whole planes) and how far below the largest exponent it
// begins. Rows choose the class with the fewest bits, by kClassLengths.
#pragma once

#include <array>
#include <cstdint>

namespace ember {

inline constexpr unsigned kRanks = 15;  // ranks 0 .. 14; 15 says that the exponent itself follows
inline constexpr size_t kRowClasses = 16;
inline constexpr uint8_t kConstantRow = 0;  // every token has the largest exponent: no bits
inline constexpr uint8_t kRawRow = 1;       // 8 bits a token

struct RowClass {
  uint8_t planes = 0;
  std::array<uint8_t, 16> distance = {};  // by rank; the last one is no rank
};

// The ranks that the whole planes tell.
constexpr unsigned class_told(const RowClass& row_class) { return (1u << row_class.planes) - 1; }

constexpr unsigned class_rank(const RowClass& row_class, unsigned distance) {
  unsigned rank = 0;
  while (rank < kRanks && row_class.distance[rank] != distance) ++rank;
  return rank;
}

// Which of the distances outside the peak comes first, of the next above and the next below it.
enum class Beside : uint8_t { kBelow, kAbove, kTwoBelow };

// A peak of 2^planes - 1 distances that begins at `first`; then those beside it in turns.
constexpr RowClass peak_class(unsigned planes, unsigned first, Beside beside) {
  RowClass made;
  made.planes = static_cast<uint8_t>(planes);
  unsigned rank = 0;
  unsigned below = first;
  for (; rank < class_told(made); ++rank) made.distance[rank] = static_cast<uint8_t>(below++);
  unsigned above = first;  // one more than the next above
  for (unsigned turn = beside == Beside::kAbove ? 1 : 0; rank < kRanks; ++turn) {
    const bool up = beside == Beside::kTwoBelow ? turn % 3 == 2 : turn % 2 == 1;
    if (up && above > 0) made.distance[rank++] = static_cast<uint8_t>(--above);
    if (!up && below < kRanks) made.distance[rank++] = static_cast<uint8_t>(below++);
  }
  return made;
}

// Chosen from all such classes as those that together make the rows of docs/codec.md shortest; two
// wide ones more, for rows that have no peak. The most frequent come last: the classes of rows are
// coded as rows themselves, in which the largest values cost least.
inline constexpr std::array<RowClass, kRowClasses> kClasses = {
    RowClass{},
    RowClass{},
    peak_class(3, 3, Beside::kBelow),
    peak_class(3, 1, Beside::kBelow),
    peak_class(2, 3, Beside::kTwoBelow),
    peak_class(1, 2, Beside::kAbove),
    peak_class(1, 0, Beside::kBelow),
    peak_class(2, 2, Beside::kBelow),
    peak_class(2, 2, Beside::kAbove),
    peak_class(2, 2, Beside::kTwoBelow),
    peak_class(1, 1, Beside::kAbove),
    peak_class(1, 1, Beside::kTwoBelow),
    peak_class(2, 1, Beside::kAbove),
    peak_class(2, 0, Beside::kBelow),
    peak_class(2, 1, Beside::kBelow),
    peak_class(2, 1, Beside::kTwoBelow)};

// Bits of a token by class and by its distance (kRanks: that or more). A constant row is no choice
// by bits: it has an entry that is never the least.
inline constexpr uint8_t kMostLength = 32;
using ClassLengths = std::array<std::array<uint8_t, kRanks + 1>, kRowClasses>;
constexpr ClassLengths class_lengths() {
  ClassLengths lengths = {};
  lengths[kConstantRow].fill(kMostLength);
  lengths[kRawRow].fill(8);
  for (size_t k = kRawRow + 1; k < kRowClasses; ++k) {
    const unsigned told = class_told(kClasses[k]);
    for (unsigned distance = 0; distance <= kRanks; ++distance) {
      const unsigned rank = distance == kRanks ? kRanks : class_rank(kClasses[k], distance);
      unsigned bits = kClasses[k].planes;
      if (rank >= told) bits += rank == kRanks ? kRanks - told + 8 : rank - told + 1;
      lengths[k][distance] = static_cast<uint8_t>(bits);
    }
  }
  return lengths;
}
inline constexpr ClassLengths kClassLengths = class_lengths();

// Bits of a row's head that a class costs more than the most frequent one, about. A row takes the
// class with the fewest bits, these included; of equal ones the first.
inline constexpr std::array<uint16_t, kRowClasses> kClassCosts = {4, 4, 4, 4, 4, 4, 4, 4,
                                                                  4, 4, 3, 2, 1, 0, 0, 0};

}  // namespace ember
