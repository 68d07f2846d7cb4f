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
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/text/tokenizer_file.h"

namespace ember {

class Bpe {
 public:
  explicit Bpe(BpeModel model);

  // Appends the ids of `piece`. A character that is not in the vocabulary gives the tokens of its
  // bytes (byte fallback), else the unknown token, else nothing, as in the original.
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
  // The token of a piece's character, or -1. `decorated` is scratch for prefix and suffix.
  TokenId token_of(std::string_view character, bool first, bool last, std::string& decorated) const;
  // Adds the tokens of the bytes, if all have one.
  bool fall_back_to_bytes(std::string_view character);
  void add_symbol(TokenId id);
  void offer(uint32_t left);
  void merge_all();

  Vocabulary vocabulary_;
  std::unordered_map<uint64_t, Rule> rules_;
  bool ignore_merges_;
  bool fuse_unknown_;
  std::optional<TokenId> unknown_;
  std::string continuing_prefix_;
  std::string end_suffix_;
  std::vector<TokenId> byte_tokens_;   // by byte, -1: none; empty without byte fallback
  std::vector<TokenId> short_tokens_;  // of characters below U+0800, -1: none
  std::unordered_map<std::string, std::vector<TokenId>, StringHash, std::equal_to<>> recent_;
  std::vector<Symbol> symbols_;        // scratch
  std::vector<Candidate> candidates_;  // scratch: a heap
};

}  // namespace ember
