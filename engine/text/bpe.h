// BPE: merges the characters of a piece, best-ranked pair first, into tokens of the vocabulary.
//
// Journey    pieces -> [bpe] -> ids
// Invariant  the ids of the plain rule (the lowest rank, then the leftmost pair, until none is
//            left); O(n log n) in the length of the piece
// Threads    one object a thread: recent pieces are kept
// Not here   how text becomes pieces (pre_tokenizer.h)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/text/tokenizer_file.h"

namespace ember {

class Bpe {
 public:
  explicit Bpe(BpeModel model);

  // Appends the ids of `piece`. A character that is not in the vocabulary gives no id, as in the
  // original when there is no unknown token; a byte-level vocabulary has all 256.
  void encode(std::string_view piece, std::vector<TokenId>& out);
  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  struct Rule {
    uint32_t rank;
    TokenId result;
  };
  // A token of the piece so far, linked to its neighbours.
  struct Symbol {
    TokenId id;
    uint32_t previous;
    uint32_t next;
    bool merged_away;
  };
  struct Candidate {
    uint32_t rank;
    uint32_t left;  // index in symbols_
    TokenId result;
    bool operator<(const Candidate& other) const {  // the greatest is merged first
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };

  const Rule* rule_of(TokenId left, TokenId right) const;
  void split_characters(std::string_view piece);
  void offer(uint32_t left);
  void merge_all();

  Vocabulary vocabulary_;
  std::unordered_map<uint64_t, Rule> rules_;
  bool ignore_merges_;
  std::unordered_map<std::string, std::vector<TokenId>, StringHash, std::equal_to<>> recent_;
  std::vector<Symbol> symbols_;        // scratch
  std::vector<Candidate> candidates_;  // scratch: a heap
};

}  // namespace ember
