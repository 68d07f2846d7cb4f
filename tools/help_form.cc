// A formatter for CLI11 that writes options as the manual does.
#include "tools/help_form.h"

#include <memory>
#include <sstream>
#include <vector>

#include "tools/command_docs.h"

namespace ember {
namespace {

constexpr size_t kHelpColumn = 28;

// `text` behind `front`, wrapped, each line beginning where `text` does.
std::string wrapped(std::string front, const std::string& text, size_t width) {
  std::string out;
  if (front.size() + 2 > kHelpColumn) {
    out = front + "\n";
    front.clear();
  }
  std::string line = front + std::string(kHelpColumn - front.size(), ' ');
  bool begun = false;
  std::istringstream words(text);
  for (std::string word; words >> word; begun = true) {
    if (begun && line.size() + 1 + word.size() > width) {
      out += line + "\n";
      line.assign(kHelpColumn, ' ');
      begun = false;
    }
    line += (begun ? " " : "") + word;
  }
  return out + line + "\n";
}

class HelpForm final : public CLI::Formatter {
 public:
  explicit HelpForm(size_t width) : width_(width) {}

  std::string make_option(const CLI::Option* option, bool /*is_positional*/) const override {
    const OptionDoc doc = option_doc(*option, "");
    std::string front = " ";
    for (const std::string& name : doc.names) front += " " + name + ",";
    front.pop_back();
    if (!doc.positional && !doc.value.empty()) front += " " + doc.value;
    return wrapped(front, doc.help + doc.remarks(), width_);
  }

  // Between two groups CLI11 has an empty line of its own.
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    const std::string text = CLI::Formatter::make_group(group, is_positional, options);
    return group == "Options" || is_positional ? text : text.substr(1);
  }

  // A group of options of which one is asked for.
  std::string make_expanded(const CLI::App* group) const override {
    std::string text = "\n" + group->get_group() + ": " + group->get_description() + "\n";
    for (const CLI::Option* option : group->get_options()) {
      if (option != group->get_help_ptr()) text += make_option(option, false);
    }
    return text;
  }

 private:
  const size_t width_;
};

}  // namespace

void use_help_form(CLI::App& root, size_t width) {
  root.formatter(std::make_shared<HelpForm>(width));
}

std::string usage_error(const CLI::App& root, const CLI::ParseError& error) {
  std::string command = root.get_name();
  for (const CLI::App* at = &root; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    if (!at->get_name().empty()) command += " " + at->get_name();
  }
  return std::string(error.what()) + " (" + command + " --help)";
}

}  // namespace ember
