// Sharing out a step's rows: evenly among tenants, then within each.
#include "engine/runtime/step_plan.h"

#include <algorithm>

namespace ember {
namespace {

class RowSharing {
 public:
  RowSharing(std::span<const StepCandidate> candidates, std::vector<size_t>& tokens)
      : candidates_(candidates), tokens_(tokens) {}

  void share(size_t rows) {
    find_tenants();
    // Whoever wants less than an even share gives the rest to those who want more.
    std::stable_sort(tenants_.begin(), tenants_.end(),
                     [](const Tenant& a, const Tenant& b) { return a.wanted < b.wanted; });
    for (size_t i = 0; i < tenants_.size(); ++i) {
      const size_t left = tenants_.size() - i;
      const size_t given = std::min(tenants_[i].wanted, (rows + left - 1) / left);
      share_within(tenants_[i].name, given);
      rows -= given;
    }
  }

 private:
  struct Tenant {
    std::string_view name;
    size_t wanted = 0;
  };

  bool is_prompt(size_t i) const { return !candidates_[i].decode && candidates_[i].uncomputed > 0; }
  size_t wanted(size_t i) const { return candidates_[i].uncomputed - tokens_[i]; }

  void find_tenants() {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (!is_prompt(i)) continue;
      auto found = std::find_if(tenants_.begin(), tenants_.end(), [&](const Tenant& tenant) {
        return tenant.name == candidates_[i].tenant;
      });
      if (found == tenants_.end()) found = tenants_.insert(found, Tenant{candidates_[i].tenant, 0});
      found->wanted += candidates_[i].uncomputed;
    }
  }

  void share_within(std::string_view tenant, size_t rows) {
    std::vector<size_t> prompts;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (is_prompt(i) && candidates_[i].tenant == tenant) prompts.push_back(i);
    }
    rows -= give(prompts.front(), (rows + 1) / 2);
    std::stable_sort(prompts.begin(), prompts.end(),
                     [this](size_t a, size_t b) { return wanted(a) < wanted(b); });
    for (const size_t i : prompts) rows -= give(i, rows);
  }

  size_t give(size_t i, size_t rows) {
    const size_t given = std::min(rows, wanted(i));
    tokens_[i] += given;
    return given;
  }

  std::span<const StepCandidate> candidates_;
  std::vector<size_t>& tokens_;
  std::vector<Tenant> tenants_;
};

}  // namespace

void plan_step(std::span<const StepCandidate> candidates, size_t chunk_tokens,
               std::vector<size_t>& tokens) {
  tokens.assign(candidates.size(), 0);
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].decode && candidates[i].uncomputed > 0) tokens[i] = 1;
  }
  RowSharing(candidates, tokens).share(chunk_tokens);
}

}  // namespace ember
