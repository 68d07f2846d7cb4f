// BPE: a heap of candidate pairs over a linked list; a popped pair that changed is passed over.
#include "engine/text/bpe.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/text/byte_level.h"
#include "engine/text/utf8.h"

namespace ember {
namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
constexpr size_t kRecentPieces = 16384;   // kept at most, then forgotten together
constexpr size_t kRecentPieceBytes = 64;  // longer pieces seldom come again

constexpr TokenId kNoToken = -1;
constexpr char32_t kShortCharacters = 0x800;

TokenId id_or_none(const Vocabulary& vocabulary, std::string_view token) {
  const auto place = vocabulary.find(token);
  return place == vocabulary.end() ? kNoToken : place->second;
}

uint64_t pair_key(TokenId left, TokenId right) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
}

}  // namespace

Bpe::Bpe(BpeModel model)
    : vocabulary_(std::move(model.vocabulary)),
      ignore_merges_(model.ignore_merges),
      fuse_unknown_(model.fuse_unknown),
      unknown_(model.unknown),
      continuing_prefix_(std::move(model.continuing_prefix)),
      end_suffix_(std::move(model.end_suffix)) {
  rules_.reserve(model.merges.size());
  uint32_t rank = 0;
  for (const BpeMerge& merge : model.merges) {
    rules_.insert_or_assign(pair_key(merge.left, merge.right), Rule{rank++, merge.result});
  }
  std::string text;
  for (char32_t c = 0; c < kShortCharacters; ++c) {
    text.clear();
    append_short_utf8(text, c);
    short_tokens_.push_back(id_or_none(vocabulary_, text));
  }
  for (unsigned byte = 0; byte < 256 && model.byte_fallback; ++byte) {
    byte_tokens_.push_back(id_or_none(vocabulary_, byte_token(static_cast<uint8_t>(byte))));
  }
}

void Bpe::encode(std::string_view piece, std::vector<TokenId>& out) {
  if (ignore_merges_) {
    const auto whole = vocabulary_.find(piece);
    if (whole != vocabulary_.end()) {
      out.push_back(whole->second);
      return;
    }
  }
  const auto known = recent_.find(piece);
  if (known != recent_.end()) {
    out.insert(out.end(), known->second.begin(), known->second.end());
    return;
  }
  split_characters(piece);
  merge_all();
  const size_t first = out.size();
  for (const Symbol& symbol : symbols_) {
    if (!symbol.merged_away) out.push_back(symbol.id);
  }
  if (piece.size() > kRecentPieceBytes) return;
  if (recent_.size() == kRecentPieces) recent_.clear();
  recent_.emplace(
      piece, std::vector<TokenId>(out.begin() + static_cast<std::ptrdiff_t>(first), out.end()));
}

const Bpe::Rule* Bpe::rule_of(TokenId left, TokenId right) const {
  const auto place = rules_.find(pair_key(left, right));
  return place == rules_.end() ? nullptr : &place->second;
}

TokenId Bpe::token_of(std::string_view character, bool first, bool last,
                      std::string& decorated) const {
  const bool prefixed = !first && !continuing_prefix_.empty();
  const bool suffixed = last && !end_suffix_.empty();
  if (!prefixed && !suffixed) {
    const char32_t c = character.size() <= 2 ? first_code_point(character) : kShortCharacters;
    return c < kShortCharacters ? short_tokens_[c] : id_or_none(vocabulary_, character);
  }
  decorated.clear();
  if (prefixed) decorated += continuing_prefix_;
  decorated += character;
  if (suffixed) decorated += end_suffix_;
  return id_or_none(vocabulary_, decorated);
}

void Bpe::add_symbol(TokenId id) {
  const auto index = static_cast<uint32_t>(symbols_.size());
  symbols_.push_back({id, index == 0 ? kNone : index - 1, index + 1, false});
}

bool Bpe::fall_back_to_bytes(std::string_view character) {
  if (byte_tokens_.empty()) return false;
  for (const char byte : character) {
    if (byte_tokens_[static_cast<uint8_t>(byte)] == kNoToken) return false;
  }
  for (const char byte : character) add_symbol(byte_tokens_[static_cast<uint8_t>(byte)]);
  return true;
}

void Bpe::split_characters(std::string_view piece) {
  symbols_.clear();
  std::string decorated;
  bool unknown_waits = false;  // until a known character follows, also behind bytes: the original's
  for (size_t at = 0; at < piece.size();) {
    const size_t length = utf8_step(piece.substr(at)).length;
    const std::string_view character = piece.substr(at, length);
    const bool last = at + length == piece.size();
    const TokenId id = token_of(character, at == 0, last, decorated);
    at += length;
    if (id != kNoToken) {
      if (unknown_waits) add_symbol(*unknown_);
      unknown_waits = false;
      add_symbol(id);
    } else if (!fall_back_to_bytes(decorated.empty() ? character : decorated) && unknown_) {
      if (unknown_waits && !fuse_unknown_) add_symbol(*unknown_);
      unknown_waits = true;
    }
    decorated.clear();
  }
  if (unknown_waits) add_symbol(*unknown_);
  if (!symbols_.empty()) symbols_.back().next = kNone;
}

void Bpe::offer(uint32_t left) {
  const uint32_t right = symbols_[left].next;
  if (right == kNone) return;
  const Rule* rule = rule_of(symbols_[left].id, symbols_[right].id);
  if (rule == nullptr) return;
  candidates_.push_back({rule->rank, left, rule->result});
  std::push_heap(candidates_.begin(), candidates_.end());
}

void Bpe::merge_all() {
  candidates_.clear();
  for (uint32_t i = 0; i < symbols_.size(); ++i) offer(i);
  while (!candidates_.empty()) {
    std::pop_heap(candidates_.begin(), candidates_.end());
    const Candidate best = candidates_.back();
    candidates_.pop_back();
    Symbol& left = symbols_[best.left];
    if (left.merged_away || left.next == kNone) continue;
    Symbol& right = symbols_[left.next];
    // The pair may have changed since it was offered; what counts is what it would become.
    const Rule* rule = rule_of(left.id, right.id);
    if (rule == nullptr || rule->result != best.result) continue;
    left.id = best.result;
    left.next = right.next;
    right.merged_away = true;
    if (left.next != kNone) symbols_[left.next].previous = best.left;
    if (left.previous != kNone) offer(left.previous);
    offer(best.left);
  }
}

}  // namespace ember
