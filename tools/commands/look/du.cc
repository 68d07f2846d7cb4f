// du: adds up blocks, by what one asks for, the largest first.
#include "tools/commands/look/du.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/look/block_tree.h"
#include "tools/commands/look/namespace_titles.h"
#include "tools/commands/look/prefix_text.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

struct Share {
  std::string name;
  uint32_t root = kNoNode;  // of a prefix
  BlockTree::Sums sums;
};

constexpr const char* kNames[] = {"namespace", "scope", "prefix"};

std::vector<Share> shares(const DuOptions& options, const BlockTree& tree, uint32_t start) {
  const int64_t now_us = system_clock().unix_us();
  BlockFilter filter;
  filter.name_space = options.filter.name_space;
  filter.scope = options.filter.scope;
  std::map<std::string, Share> by_name;
  std::string prefix;
  uint32_t root = kNoNode;
  tree.descend(start, [&](uint32_t index, uint32_t depth) {
    const BlockNode& node = tree.node(index);
    // A prefix is a first block; below one that was asked for, each of its children.
    const bool begins = depth == 0 || (start != kNoNode && depth == 1);
    if (begins) {
      prefix = node.hash.hex();
      root = index;
    }
    if (!passes(filter, tree, node, now_us)) return true;
    const std::string name = options.by == DuBy::kNamespace
                                 ? tree.name_spaces()[node.name_space].hex()
                             : options.by == DuBy::kScope ? tree.scopes()[node.scope]
                                                          : prefix;
    Share& share = by_name[name];
    share.name = name;
    share.root = root;
    share.sums.add(node);
    return true;
  });
  std::vector<Share> list;
  for (auto& [name, share] : by_name) list.push_back(std::move(share));
  std::stable_sort(list.begin(), list.end(), [](const Share& a, const Share& b) {
    return a.sums.stored_bytes > b.sums.stored_bytes;
  });
  return list;
}

Json json_of(const char* key, const std::string& name, const BlockTree::Sums& sums) {
  return {{key, name},
          {"blocks", sums.blocks},
          {"tails", sums.tails},
          {"tokens", sums.tokens},
          {"stored_bytes", sums.stored_bytes},
          {"raw_bytes", sums.raw_bytes},
          {"hits", sums.hits},
          {"last_use_unix_us", sums.last_use_unix_us}};
}

Result<std::string> label(const DuOptions& options, const BlockTree& tree, const Share& share,
                          StoreReader& reader, PrefixText& text) {
  if (options.by == DuBy::kNamespace) {
    EMBER_ASSIGN(const std::vector<std::string> titles,
                 namespace_titles(reader, tree.name_spaces()));
    return titles[tree.node(share.root).name_space];
  }
  if (options.by == DuBy::kScope) return std::string();
  EMBER_ASSIGN(const std::optional<BlockRecord> record, reader.record(tree.node(share.root).hash));
  if (!record) return std::string();
  return one_line(text.of(record->name_space, record->tokens).value_or(""), 200);
}

}  // namespace

Result<int> run_du(const DuOptions& options, CommandContext& context) {
  EMBER_TRY(check_filter(options.filter));
  CommandIo& io = context.io;
  EMBER_ASSIGN(const std::shared_ptr<StoreReader> reader, context.open_reader(options.store));
  EMBER_ASSIGN(const BlockTree tree, read_tree(*reader, io));
  EMBER_TRY(check_known(options.filter, tree));
  EMBER_ASSIGN(const uint32_t start, start_of(tree, options.filter.prefix));
  const std::vector<Share> list = shares(options, tree, start);
  const size_t shown = options.limit == 0 ? list.size() : std::min(list.size(), options.limit);
  const char* by = kNames[static_cast<size_t>(options.by)];
  PrefixText text(*reader);
  TextTable table({{by},
                   {"bytes", true},
                   {"share", true},
                   {"tokens", true},
                   {"blocks", true},
                   {"hits", true},
                   {"age", true},
                   {""}});
  BlockTree::Sums all;
  for (const Share& share : list) all.add(share.sums);
  const int64_t now_us = system_clock().unix_us();
  const auto add = [&](const std::string& name, const BlockTree::Sums& sums,
                       const std::string& what) {
    table.add({name, human_bytes(sums.stored_bytes),
               percent_text(static_cast<double>(sums.stored_bytes),
                            static_cast<double>(all.stored_bytes)),
               grouped(sums.tokens), grouped(sums.blocks + sums.tails), grouped(sums.hits),
               age_text(sums.last_use_unix_us, now_us), what});
  };
  for (size_t i = 0; i < shown; ++i) {
    EMBER_ASSIGN(const std::string what, label(options, tree, list[i], *reader, text));
    if (options.json) {
      Json json = json_of(by, list[i].name, list[i].sums);
      if (!what.empty()) json["text"] = what;
      io.out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
    } else {
      add(options.by == DuBy::kScope ? list[i].name : list[i].name.substr(0, 16), list[i].sums,
          what);
    }
  }
  if (!options.json) {
    add("all", all, "");
    io.out << table.text(io.width, io.colour);
    if (shown < list.size()) {
      io.out << grouped(list.size() - shown) << " more in the sum (--limit 0 shows all)\n";
    }
  }
  io.out << std::flush;
  return kExitOk;
}

}  // namespace ember
