// Unicode update: what changed in the general categories from Unicode 14 to 16.
//
// Journey    none; lets an expression mean the same with every version of Oniguruma
// Invariant  applied to the tables of any version from 14 to 16 it gives those of 16, which the
//            `tokenizers` package carries; Debian 12's Oniguruma carries 14
// Threads    constant data
// Source     Unicode character database, General_Category of 14.0 against 16.0: exactly the code
//            points that differ, as Python's unicodedata (14.0.0) and unicodedata2 (16.0.0) say;
//            Han: the unified ideographs among them
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace ember {

// A set of general categories, and the script Han beside them.
using CategorySet = uint32_t;
inline constexpr CategorySet kLu = 1U << 0, kLl = 1U << 1, kLt = 1U << 2, kLm = 1U << 3,
                             kLo = 1U << 4, kMn = 1U << 5, kMc = 1U << 6, kMe = 1U << 7,
                             kNd = 1U << 8, kNl = 1U << 9, kNo = 1U << 10, kPc = 1U << 11,
                             kPd = 1U << 12, kPs = 1U << 13, kPe = 1U << 14, kPi = 1U << 15,
                             kPf = 1U << 16, kPo = 1U << 17, kSm = 1U << 18, kSc = 1U << 19,
                             kSk = 1U << 20, kSo = 1U << 21, kZs = 1U << 22, kZl = 1U << 23,
                             kZp = 1U << 24, kCc = 1U << 25, kCf = 1U << 26, kCs = 1U << 27,
                             kCo = 1U << 28, kCn = 1U << 29, kHan = 1U << 30;

// Code points whose category is not that of version 14, ascending.
struct CategoryChange {
  uint32_t first;
  uint32_t last;
  CategorySet now;  // one category, with kHan where it applies
};
std::span<const CategoryChange> category_changes();

// What a property's name (without spaces, '-' and '_', in lower case) stands for, if the changes
// touch it; a character has the property when it has any of these.
std::optional<CategorySet> categories_of_property(std::string_view name);

}  // namespace ember
