// Reading CLI11's definitions, and writing them for man and for three shells.
#include "tools/command_docs.h"

#include <algorithm>
#include <set>

namespace ember {
namespace {

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// Of a type's name as CLI11 writes one whose values are checked against a list: "NAME:{a,b}".
std::vector<std::string> choices_of(const std::string& type_name) {
  std::vector<std::string> choices;
  const size_t open = type_name.find(":{");
  const size_t close = type_name.find('}', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) return choices;
  for (size_t at = open + 2; at < close;) {
    const size_t end = std::min(type_name.find(',', at), close);
    choices.push_back(type_name.substr(at, end - at));
    at = end + 1;
  }
  return choices;
}

// "1 to 1024" of "INT:INT in [1 - 1024]".
std::string range_of(const std::string& type_name) {
  const size_t open = type_name.find("in [");
  const size_t between = type_name.find(" - ", open);
  const size_t close = type_name.find(']', open);
  if (open == std::string::npos || between == std::string::npos || close == std::string::npos) {
    return "";
  }
  return type_name.substr(open + 4, between - open - 4) + " to " +
         type_name.substr(between + 3, close - between - 3);
}

std::string names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::sort(names.begin(), names.end());
  return joined(names, ", ");
}

void add_options(const CLI::App& app, const std::string& outer_group, CommandDoc& doc) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string& own = option->get_group();
    const bool again = !outer_group.empty() && option == app.get_help_ptr();
    if (own.empty() || again) continue;  // hidden, or the command's own flag
    const std::string group = own == "Options" ? outer_group : own;
    doc.options.push_back(option_doc(*option, group));
  }
}

void add_command(const CLI::App& app, const std::vector<std::string>& words,
                 std::vector<CommandDoc>& docs) {
  const size_t index = docs.size();
  docs.push_back({words, app.get_description(), {}, {}, app.get_footer()});
  add_options(app, "", docs[index]);
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (below->get_name().empty()) {  // a group of options
      add_options(*below, below->get_group(), docs[index]);
      continue;
    }
    docs[index].subcommands.push_back(below->get_name());
    std::vector<std::string> longer = words;
    longer.push_back(below->get_name());
    add_command(*below, longer, docs);
  }
}

// A line of man's that begins with a dot or an apostrophe is a request, and a backslash escapes.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c == '\n' ? ' ' : c;
    }
  }
  return !out.empty() && (out[0] == '.' || out[0] == '\'') ? "\\&" + out : out;
}

void manual_of(const CommandDoc& doc, std::string& out) {
  out += ".SS emberkv " + roff(joined(doc.words, " ")) + "\n" + roff(doc.help) + ".\n";
  std::string group;
  for (const OptionDoc& option : doc.options) {
    if (option.group != group) {
      group = option.group;
      if (!group.empty()) out += ".PP\n" + roff(group) + ":\n";
    }
    out += ".TP\n";
    std::string names;
    for (const std::string& name : option.names) {
      names += (names.empty() ? "" : ", ") + ("\\fB" + roff(name) + "\\fR");
    }
    if (!option.value.empty() && !option.positional) names += " \\fI" + roff(option.value) + "\\fR";
    out += names + "\n" + roff(option.help + option.remarks()) + "\n";
  }
  if (doc.notes.empty()) return;
  out += ".PP\n.nf\n";
  for (size_t at = 0; at < doc.notes.size();) {
    const size_t end = std::min(doc.notes.find('\n', at), doc.notes.size());
    out += roff(doc.notes.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  out += ".fi\n";
}

// A word between apostrophes, for any of the shells.
std::string shell_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::vector<std::string> flags_of(const CommandDoc& doc) {
  std::vector<std::string> flags;
  for (const OptionDoc& option : doc.options) {
    if (option.positional) continue;
    for (const std::string& name : option.names) {
      if (name.rfind("--", 0) == 0) flags.push_back(name);
    }
  }
  return flags;
}

// Flags whose value is a path, of all commands: behind them the shell completes files.
std::vector<std::string> path_flags(const std::vector<CommandDoc>& docs) {
  std::vector<std::string> flags;
  for (const CommandDoc& doc : docs) {
    for (const OptionDoc& option : doc.options) {
      const bool path = option.value == "DIR" || option.value == "FILE" || option.value == "PATH";
      if (!path || option.positional) continue;
      for (const std::string& name : option.names) {
        if (std::find(flags.begin(), flags.end(), name) == flags.end()) flags.push_back(name);
      }
    }
  }
  return flags;
}

// Lines of a case that completes the values of flags by command, and of positionals.
std::string bash_choices(const std::vector<CommandDoc>& docs) {
  std::string out;
  for (const CommandDoc& doc : docs) {
    const std::string command = doc.words.empty() ? "" : " " + joined(doc.words, " ");
    for (const OptionDoc& option : doc.options) {
      if (option.choices.empty() || option.positional) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) {
        patterns.push_back(shell_word(command + " " + name));
      }
      out += "    " + joined(patterns, "|") + ") COMPREPLY=($(compgen -W " +
             shell_word(joined(option.choices, " ")) + " -- \"$word\")); return;;\n";
    }
  }
  return out.empty() ? out : "  case \"$command $before\" in\n" + out + "  esac\n";
}

std::string bash_script(const std::vector<CommandDoc>& docs) {
  std::string out =
      "# Completion of emberkv for bash: source <(emberkv completion bash)\n"
      "_emberkv() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command='' i\n"
      "  COMPREPLY=()\n"
      "  # Bash has --flag=word in three words.\n"
      "  if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then"
      " before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
      "  case $before in\n"
      "    " +
      joined(path_flags(docs), "|") +
      ") COMPREPLY=($(compgen -f -- \"$word\")); return;;\n"
      "  esac\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \"$command ${COMP_WORDS[i]}\" in\n";
  for (const CommandDoc& doc : docs) {
    if (doc.words.empty()) continue;
    out += "      " + shell_word(" " + joined(doc.words, " ")) +
           ") command=" + shell_word(" " + joined(doc.words, " ")) + ";;\n";
  }
  out += "    esac\n  done\n" + bash_choices(docs) + "  case $command in\n";
  for (const CommandDoc& doc : docs) {
    std::vector<std::string> words = doc.subcommands;
    const std::vector<std::string> flags = flags_of(doc);
    words.insert(words.end(), flags.begin(), flags.end());
    for (const OptionDoc& option : doc.options) {
      if (!option.positional) continue;
      words.insert(words.end(), option.choices.begin(), option.choices.end());
    }
    const std::string name = doc.words.empty() ? "" : " " + joined(doc.words, " ");
    out += "    " + shell_word(name) + ") COMPREPLY=($(compgen -W " +
           shell_word(joined(words, " ")) + " -- \"$word\"));;\n";
  }
  return out + "  esac\n}\ncomplete -o default -F _emberkv emberkv\n";
}

std::string fish_script(const std::vector<CommandDoc>& docs) {
  std::string out = "# Completion of emberkv for fish: emberkv completion fish | source\n";
  for (const CommandDoc& doc : docs) {
    std::string condition;
    for (const std::string& word : doc.words) {
      condition += (condition.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + word);
    }
    if (doc.words.empty()) condition = "__fish_use_subcommand";
    const std::string begin = "complete -c emberkv -n " + shell_word(condition);
    for (const std::string& name : doc.subcommands) {
      std::vector<std::string> words = doc.words;
      words.push_back(name);
      const auto below = std::find_if(
          docs.begin(), docs.end(), [&words](const CommandDoc& one) { return one.words == words; });
      out += begin + " -f -a " + shell_word(name) + " -d " + shell_word(below->help) + "\n";
    }
    for (const OptionDoc& option : doc.options) {
      const std::string choices =
          option.choices.empty() ? "" : " -f -a " + shell_word(joined(option.choices, " "));
      if (option.positional) {
        if (!choices.empty()) out += begin + choices + "\n";
        continue;
      }
      out += begin;
      for (const std::string& name : option.names) {
        out += name.rfind("--", 0) == 0 ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      out += (option.value.empty() ? "" : " -r") + choices + " -d " + shell_word(option.help) +
             "\n";
    }
  }
  return out;
}

}  // namespace

OptionDoc option_doc(const CLI::Option& option, const std::string& group) {
  OptionDoc doc;
  for (const std::string& name : option.get_snames()) doc.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) doc.names.push_back("--" + name);
  doc.positional = doc.names.empty();
  if (doc.positional) doc.names.push_back(option.get_name());
  const bool takes_value = option.get_items_expected_max() > 0;
  const std::string type = takes_value ? option.get_type_name() : "";
  doc.choices = choices_of(type);
  doc.value = type.substr(0, type.find(':'));
  if (takes_value && doc.value.empty()) doc.value = "VALUE";
  if (!doc.choices.empty() && doc.value != "LIST") doc.value = "{" + joined(doc.choices, ",") + "}";
  doc.range = range_of(type);
  doc.standard = takes_value ? option.get_default_str() : "";
  doc.needs = names_of(option.get_needs());
  doc.excludes = names_of(option.get_excludes());
  doc.help = option.get_description();
  doc.group = group;
  doc.required = option.get_required();
  return doc;
}

std::string OptionDoc::remarks() const {
  std::vector<std::string> parts;
  if (required) parts.emplace_back("required");
  if (!range.empty()) parts.push_back(range);
  if (!standard.empty()) parts.push_back("default: " + standard);
  if (!needs.empty()) parts.push_back("with " + needs);
  if (!excludes.empty()) parts.push_back("not with " + excludes);
  return parts.empty() ? "" : " (" + joined(parts, "; ") + ")";
}

std::vector<CommandDoc> command_docs(const CLI::App& root) {
  std::vector<CommandDoc> docs;
  add_command(root, {}, docs);
  return docs;
}

std::string manual_page(const std::vector<CommandDoc>& docs, const std::string& version) {
  std::string out = ".TH EMBERKV 1 \"\" \"EmberKV " + version +
                    "\" \"User commands\"\n.SH NAME\nemberkv \\- " + roff(docs[0].help) +
                    "\n.SH SYNOPSIS\n\\fBemberkv\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
                    ".SH EXIT STATUS\n0 done; 1 the input, the store or the machine, with one line "
                    "on standard error; 2 the command line itself.\n"
                    ".SH ENVIRONMENT\n\\fBXDG_DATA_HOME\\fR: the store is emberkv in it unless "
                    "\\-\\-store names another. \\fBNO_COLOR\\fR: no colours.\n.SH COMMANDS\n";
  for (const CommandDoc& doc : docs) {
    if (!doc.words.empty()) manual_of(doc, out);
  }
  return out;
}

std::string completion_script(const std::vector<CommandDoc>& docs, const std::string& shell) {
  if (shell == "fish") return fish_script(docs);
  const std::string bash = bash_script(docs);
  if (shell == "bash") return bash;
  return "# Completion of emberkv for zsh: source <(emberkv completion zsh)\n"
         "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" +
         bash;
}

}  // namespace ember
