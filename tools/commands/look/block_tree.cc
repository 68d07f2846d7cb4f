// Building the forest from a walk, and going through it.
#include "tools/commands/look/block_tree.h"

#include <algorithm>
#include <utility>

namespace ember {
namespace {

// The index of a value in a list that it joins when it is new.
template <typename T>
uint32_t number_of(std::vector<T>& list, std::map<T, uint32_t>& numbers, const T& value) {
  const auto [at, is_new] = numbers.try_emplace(value, static_cast<uint32_t>(list.size()));
  if (is_new) list.push_back(value);
  return at->second;
}

bool hash_before(const BlockNode& node, const BlockHash& hash) { return node.hash < hash; }

}  // namespace

void BlockTree::Sums::add(const BlockNode& node) {
  (node.tail ? tails : blocks) += 1;
  tokens += node.tokens;
  stored_bytes += node.stored_bytes;
  raw_bytes += node.raw_bytes;
  hits += node.hits;
  last_use_unix_us = std::max(last_use_unix_us, node.last_use_unix_us);
}

void BlockTree::Sums::add(const Sums& other) {
  blocks += other.blocks;
  tails += other.tails;
  tokens += other.tokens;
  stored_bytes += other.stored_bytes;
  raw_bytes += other.raw_bytes;
  hits += other.hits;
  last_use_unix_us = std::max(last_use_unix_us, other.last_use_unix_us);
}

Result<BlockTree> BlockTree::read(StoreReader& reader, const OnBlock& on_block) {
  BlockTree tree;
  bool stopped = false;
  tree.nodes_.reserve(reader.disk_stats().blocks + 64);
  EMBER_ASSIGN(tree.walked_, reader.walk([&](const BlockSight& sight) {
    tree.add(sight);
    stopped = on_block && !on_block(tree.nodes_.size());
    return !stopped;
  }));
  if (stopped) return Error{ErrorCode::kCancelled, "stopped while the blocks were read"};
  tree.link();
  return tree;
}

void BlockTree::add(const BlockSight& sight) {
  BlockNode node;
  node.hash = sight.record.hash;
  node.parent_hash = sight.record.parent;
  node.position = sight.record.position;
  node.tokens = static_cast<uint32_t>(sight.record.tokens.size());
  node.hits = sight.touch.hits;
  node.stored_bytes = sight.record.stored_bytes();
  node.raw_bytes = sight.record.raw_bytes();
  node.last_use_unix_us = sight.touch.last_use_unix_us;
  // More of these are in no store but a made one: the last number is then theirs together.
  const auto small = [](uint32_t number) {
    return static_cast<uint16_t>(std::min<uint32_t>(number, UINT16_MAX));
  };
  node.name_space = small(number_of(name_spaces_, name_space_numbers_, sight.record.name_space));
  node.build = small(number_of(builds_, build_numbers_, sight.record.numerics_build));
  node.scope = number_of(scopes_, scope_numbers_, sight.record.scope);
  for (size_t tier = 0; tier < kTierCount; ++tier) {
    if (sight.place.in[tier]) node.tiers = static_cast<uint8_t>(node.tiers | (1u << tier));
  }
  node.tail = sight.record.tail;
  node.durable = sight.place.durable;
  node.damaged = sight.place.damaged;
  node.pinned = sight.place.pinned_until_unix_us != 0;
  node.leased = sight.place.leases > 0;
  nodes_.push_back(node);
}

void BlockTree::link() {
  std::stable_sort(nodes_.begin(), nodes_.end(),
                   [](const BlockNode& a, const BlockNode& b) { return a.hash < b.hash; });
  // From the back, so that children and roots come out in the order of their hashes.
  for (uint32_t i = static_cast<uint32_t>(nodes_.size()); i-- > 0;) {
    const BlockHash& sought = nodes_[i].parent_hash;
    const auto parent = std::lower_bound(nodes_.begin(), nodes_.end(), sought, hash_before);
    const bool known = parent != nodes_.end() && parent->hash == sought && sought != nodes_[i].hash;
    if (!known) {
      nodes_[i].orphan = nodes_[i].position > 0;
      roots_.push_back(i);
      continue;
    }
    nodes_[i].parent = static_cast<uint32_t>(parent - nodes_.begin());
    nodes_[i].next_sibling = parent->first_child;
    parent->first_child = i;
  }
  std::reverse(roots_.begin(), roots_.end());
  cut_circles();
}

// Damage alone makes records each other's parents: one of them becomes a root.
void BlockTree::cut_circles() {
  std::vector<bool> reached(nodes_.size(), false);
  const auto mark = [&](uint32_t index, uint32_t) {
    reached[index] = true;
    return true;
  };
  descend(kNoNode, mark);
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (reached[i]) continue;
    uint32_t* link = &nodes_[nodes_[i].parent].first_child;
    while (*link != i) link = &nodes_[*link].next_sibling;
    *link = nodes_[i].next_sibling;
    nodes_[i].parent = nodes_[i].next_sibling = kNoNode;
    nodes_[i].orphan = true;
    roots_.push_back(i);
    descend(i, mark);
  }
}

std::vector<uint32_t> BlockTree::find(const std::string& digits) const {
  BlockHash least;
  std::string padded = digits;
  if (padded.size() > 32) return {};
  padded.resize(32, '0');
  for (size_t i = 0; i < 16; ++i) {
    const auto value = [&padded](size_t at) {
      const char c = padded[at];
      return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    };
    least.bytes[i] = static_cast<uint8_t>(value(2 * i) * 16 + value(2 * i + 1));
  }
  std::vector<uint32_t> found;
  for (auto it = std::lower_bound(nodes_.begin(), nodes_.end(), least, hash_before);
       it != nodes_.end() && it->hash.hex().compare(0, digits.size(), digits) == 0; ++it) {
    found.push_back(static_cast<uint32_t>(it - nodes_.begin()));
  }
  return found;
}

void BlockTree::descend(uint32_t from, const Visitor& visit) const {
  std::vector<std::pair<uint32_t, uint32_t>> stack;  // node, depth
  const auto push_back_to_front = [&stack](const std::vector<uint32_t>& list, uint32_t depth) {
    for (auto it = list.rbegin(); it != list.rend(); ++it) stack.emplace_back(*it, depth);
  };
  push_back_to_front(from == kNoNode ? roots_ : std::vector<uint32_t>{from}, 0);
  std::vector<uint32_t> children;
  while (!stack.empty()) {
    const auto [index, depth] = stack.back();
    stack.pop_back();
    if (!visit(index, depth)) continue;
    children.clear();
    for (uint32_t child = nodes_[index].first_child; child != kNoNode;
         child = nodes_[child].next_sibling) {
      children.push_back(child);
    }
    push_back_to_front(children, depth + 1);
  }
}

std::vector<uint32_t> BlockTree::path_to(uint32_t index) const {
  std::vector<uint32_t> path;
  for (uint32_t at = index; at != kNoNode; at = nodes_[at].parent) path.push_back(at);
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<BlockTree::Sums> BlockTree::subtree_sums() const {
  std::vector<Sums> sums(nodes_.size());
  std::vector<uint32_t> order;
  order.reserve(nodes_.size());
  descend(kNoNode, [&order](uint32_t index, uint32_t) {
    order.push_back(index);
    return true;
  });
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    sums[*it].add(nodes_[*it]);
    if (nodes_[*it].parent != kNoNode) sums[nodes_[*it].parent].add(sums[*it]);
  }
  return sums;
}

}  // namespace ember
