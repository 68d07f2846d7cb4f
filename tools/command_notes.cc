// The notes, by command.
#include "tools/command_notes.h"

#include <array>
#include <string>
#include <string_view>

namespace ember {
namespace {

struct Note {
  std::string_view command;  // its words
  std::string_view text;
};

constexpr std::string_view kSigns =
    "Tiers: d device, h host RAM, s disk, r remote; a dot where a block is not.\n"
    "Behind them: X a hole, U unreachable, w not yet durable, p pinned, L in use.\n\n";

constexpr std::array kNotes = {
    Note{"chat",
         "emberkv chat --model models/demo\n"
         "emberkv chat --model models/demo --resume last"},
    Note{"generate",
         "emberkv generate --model models/demo --prompt \"Once upon a time\" --max-tokens 32\n"
         "emberkv generate --model models/demo --messages-file messages.json --json"},
    Note{"stat",
         "emberkv stat\n"
         "emberkv stat --store backup --json"},
    Note{"show", "emberkv show 6bed8a0d0b432b25"},
    Note{"verify",
         "emberkv verify\n"
         "emberkv verify --sample 1000 --bytes-per-second 20MiB"},
    Note{"ls",
         "emberkv ls --sort hits --limit 20\n"
         "emberkv ls --unused-for 30d --json"},
    Note{"tree",
         "emberkv tree --depth 3\n"
         "emberkv tree --scope alice"},
    Note{"du",
         "emberkv du --by namespace\n"
         "emberkv du --by prefix --limit 10"},
    Note{"diff", "emberkv diff backup --store demo-store"},
    Note{"explain",
         "emberkv explain --prompt-file prompt.txt\n"
         "emberkv explain --messages-file messages.json\n"
         "emberkv explain --conversation last --json"},
    Note{"pin", "emberkv pin 6bed8a0d0b432b25 --for 2h"},
    Note{"unpin", "emberkv unpin 6bed8a0d0b432b25"},
    Note{"snapshot", "emberkv snapshot backup"},
    Note{"conversations list", "emberkv conversations list"},
    Note{"conversations show",
         "emberkv conversations show last\n"
         "emberkv conversations show last --json --ids"},
    Note{"conversations export", "emberkv conversations export last --format json -o talk.json"},
    Note{"conversations remove", "emberkv conversations remove last --dry-run"},
    Note{"conversations branch",
         "emberkv conversations branch last --turn 2 --message \"Another question\""},
    Note{"rm",
         "emberkv rm --unused-for 90d --dry-run\n"
         "emberkv rm --conversation last --yes"},
    Note{"gc", "emberkv gc --dry-run"},
    Note{"repair",
         "emberkv repair --dry-run\n"
         "emberkv repair --verify"},
    Note{"quarantine list", "emberkv quarantine list"},
    Note{"quarantine show", "emberkv quarantine show 6bed8a0d0b432b25"},
    Note{"quarantine clear", "emberkv quarantine clear --dry-run"},
    Note{"export",
         "emberkv export -o store.tar\n"
         "emberkv export --conversation last -o - | ssh host emberkv import -"},
    Note{"import", "emberkv import store.tar --dry-run"},
    Note{"simulate",
         "emberkv simulate\n"
         "emberkv simulate --capacities 1GiB,4GiB,16GiB --plot hits.svg"},
    Note{"top",
         "emberkv top\n"
         "emberkv top --once"},
    Note{"warm", "emberkv warm --model models/demo --system-file system.txt"},
    Note{"upgrade", "emberkv upgrade --dry-run"},
    Note{"forget", "emberkv forget --scope alice --now"},
    Note{"tokenize", "emberkv tokenize --tokenizer models/demo < lines.jsonl"},
    Note{"perplexity", "emberkv perplexity --model models/demo --text-file text.txt"},
    Note{"logits", "emberkv logits --model models/demo --ids-file ids.txt --out logits.npy"},
    Note{"completion",
         "emberkv completion bash > ~/.local/share/bash-completion/completions/emberkv"},
    Note{"manual", "emberkv manual | man -l -"},
};

std::string example_text(std::string_view lines) {
  const bool many = lines.find('\n') != std::string_view::npos;
  std::string text = many ? "Examples:\n  " : "Example:\n  ";
  for (const char c : lines) text += c == '\n' ? "\n  " : std::string(1, c);
  return text;
}

CLI::App* find(CLI::App& root, std::string_view words) {
  CLI::App* at = &root;
  while (!words.empty() && at != nullptr) {
    const size_t space = words.find(' ');
    const std::string word(words.substr(0, space));
    const auto found =
        at->get_subcommands([&word](const CLI::App* app) { return app->get_name() == word; });
    at = found.empty() ? nullptr : found.front();
    words = space == std::string_view::npos ? std::string_view() : words.substr(space + 1);
  }
  return at;
}

}  // namespace

void add_command_notes(CLI::App& root) {
  for (const Note& note : kNotes) {
    CLI::App* app = find(root, note.command);
    if (app == nullptr) continue;
    const bool blocks = note.command == "ls";
    std::string text = app->get_footer();
    if (!text.empty()) text += "\n\n";
    app->footer(text + (blocks ? std::string(kSigns) : "") + example_text(note.text));
  }
}

}  // namespace ember
