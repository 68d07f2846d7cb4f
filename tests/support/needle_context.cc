// Lines are drawn until the wished length is reached; then the facts are put between them.
#include "tests/support/needle_context.h"

#include <set>
#include <utility>

#include "base/prng.h"

namespace ember {
namespace {

// The handbook's lines but the first, again and again, each time in another order.
class HandbookLines {
 public:
  HandbookLines(const FactBook& book, Prng& prng) : book_(book), prng_(prng) {}
  const std::string& next() {
    if (order_.empty()) {
      for (size_t i = 1; i < book_.lines().size(); ++i) order_.push_back(i);
    }
    std::swap(order_[prng_.below(order_.size())], order_.back());
    const size_t line = order_.back();
    order_.pop_back();
    return book_.lines()[line];
  }

 private:
  const FactBook& book_;
  Prng& prng_;
  std::vector<size_t> order_;
};

}  // namespace

Result<NeedleContext> plant_needles(const FactBook& book, size_t tokens, size_t depths,
                                    uint64_t seed,
                                    const std::function<size_t(std::string_view)>& count) {
  Prng prng(seed);
  std::set<std::string> used_entities;
  NeedleContext context;
  size_t length = count(book.lines()[0]);
  for (size_t i = 0; i < depths; ++i) {
    context.facts.push_back(book.draw(prng, used_entities));
    length += count(context.facts.back().sentence);
  }
  if (length > tokens) {
    return Error{ErrorCode::kInvalidArgument,
                 "a context of " + std::to_string(tokens) + " tokens: its " +
                     std::to_string(depths) + " facts alone take " + std::to_string(length)};
  }
  HandbookLines handbook(book, prng);
  std::vector<std::string> others;
  while (true) {
    const bool fact = others.size() % 2 == 1 && used_entities.size() < book.entities();
    std::string line = fact ? book.draw(prng, used_entities).sentence : handbook.next();
    length += count(line);
    if (length > tokens) break;
    others.push_back(std::move(line));
  }
  context.text = book.lines()[0];
  size_t placed = 0;
  for (size_t i = 0; i < depths; ++i) {
    const size_t before = others.size() * (2 * i + 1) / (2 * depths);
    for (; placed < before; ++placed) context.text += '\n' + others[placed];
    context.text += '\n' + context.facts[i].sentence;
  }
  for (; placed < others.size(); ++placed) context.text += '\n' + others[placed];
  return context;
}

}  // namespace ember
