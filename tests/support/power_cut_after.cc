// After-states: prefixes, torn writes, sectors that overtook each other, names that were undone.
#include "tests/support/power_cut_after.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/prng.h"
#include "tests/support/temp_folder.h"

namespace ember::testing {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kSector = 512;

class AfterState {
 public:
  AfterState(uint64_t operations, uint64_t seed, CutStyle style)
      : prng_(seed * 2 + 1), style_(style), until_(prng_.below(operations + 1)) {}

  void write(const CutNode& node, const fs::path& path) {
    if (!node.folder) {
      write_file(path.string(), bytes_of(node));
      ::chmod(path.c_str(), 0600);
      return;
    }
    fs::create_directory(path);
    ::chmod(path.c_str(), 0700);
    for (const auto& [name, child] : names_of(node)) write(*child, path / name);
  }

 private:
  CutNode::Names names_of(const CutNode& node) {
    CutNode::Names names = node.synced_names;
    const size_t prefix = prng_.below(node.name_changes.size() + 1);
    for (size_t i = 0; i < node.name_changes.size(); ++i) {
      const CutNode::NameChange& change = node.name_changes[i];
      if (!happened(change.order, i < prefix)) continue;
      // A name that was never there, because its making did not happen, cannot be moved.
      if (!change.removed.empty() && names.erase(change.removed) == 0 && !change.added.empty()) {
        continue;
      }
      if (!change.added.empty()) names[change.added] = change.target;
    }
    return names;
  }

  bool happened(uint64_t order, bool in_prefix) {
    switch (style_) {
      case CutStyle::kNothing: return false;
      case CutStyle::kAll: return true;
      case CutStyle::kOrdered: return order <= until_;
      case CutStyle::kTorn: return in_prefix;
      case CutStyle::kReordered: return prng_.below(2) == 0;
    }
    return false;
  }

  std::string bytes_of(const CutNode& node) {
    if (style_ == CutStyle::kReordered) return mixed_sectors(node);
    std::string bytes = node.synced;
    const size_t prefix = prng_.below(node.changes.size() + 1);
    for (size_t i = 0; i < node.changes.size(); ++i) {
      if (!happened(node.changes[i].order, i < prefix)) {
        const bool torn = style_ == CutStyle::kOrdered || style_ == CutStyle::kTorn;
        if (torn) apply_torn(bytes, node.changes[i]);
        break;
      }
      apply_change(bytes, node.changes[i]);
    }
    return bytes;
  }

  // Of a write any part from its beginning; a truncation happens or not.
  void apply_torn(std::string& bytes, CutNode::Change change) {
    if (change.truncates) return;
    uint64_t kept = prng_.below(change.bytes.size() + 1);
    if (prng_.below(2) == 0) {
      // Whole sectors, as drives do.
      const uint64_t end = (change.offset + kept) / kSector * kSector;
      kept = end > change.offset ? end - change.offset : 0;
    }
    change.bytes.resize(kept);
    if (kept > 0) apply_change(bytes, change);
  }

  // Every sector is as before or as after, whatever its neighbours are; the size is any between.
  std::string mixed_sectors(const CutNode& node) {
    if (node.changes.empty()) return node.synced;
    std::string now = node.synced;
    for (const CutNode::Change& change : node.changes) apply_change(now, change);
    std::string bytes = node.synced;
    const uint64_t odds = prng_.below(4);  // of four: how many sectors are new
    uint64_t end = std::min(now.size(), node.synced.size());
    for (uint64_t at = 0; at < now.size(); at += kSector) {
      if (prng_.below(4) >= odds) continue;
      const uint64_t length = std::min<uint64_t>(kSector, now.size() - at);
      if (bytes.size() < at + length) bytes.resize(at + length, '\0');
      bytes.replace(at, length, now, at, length);
      end = std::max(end, at + length);
    }
    if (prng_.below(2) == 0) bytes.resize(std::max<uint64_t>(end, now.size()), '\0');
    return bytes;
  }

  Prng prng_;
  CutStyle style_;
  uint64_t until_;
};

}  // namespace

void apply_change(std::string& bytes, const CutNode::Change& change) {
  if (change.truncates) {
    bytes.resize(change.offset, '\0');
    return;
  }
  if (bytes.size() < change.offset + change.bytes.size()) {
    bytes.resize(change.offset + change.bytes.size(), '\0');
  }
  bytes.replace(change.offset, change.bytes.size(), change.bytes);
}

void write_after_state(const CutNode& root, const std::string& path, uint64_t operations,
                       uint64_t seed, CutStyle style) {
  for (const auto& entry : fs::directory_iterator(path)) fs::remove_all(entry.path());
  AfterState(operations, seed, style).write(root, path);
}

}  // namespace ember::testing
