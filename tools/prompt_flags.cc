// Flags of a prompt.
#include "tools/prompt_flags.h"

namespace ember {

std::array<CLI::Option*, 2> add_system(CLI::App& app, SystemFlags& target) {
  CLI::Option* text = app.add_option("--system", target.text, "System prompt");
  CLI::Option* file = app.add_option("--system-file", target.file, "File with the system prompt");
  text->type_name("TEXT");
  file->type_name("FILE")->excludes(text);
  return {text, file};
}

CLI::Option_group* add_prompt(CLI::App& app, PromptFlags& target) {
  CLI::Option_group* source = app.add_option_group("Prompt", "Exactly one of these");
  source->add_option("--prompt", target.prompt, "Raw text")->type_name("TEXT");
  source->add_option("--prompt-file", target.prompt_file, "File of raw text")->type_name("FILE");
  CLI::Option* messages =
      source->add_option("--messages-file", target.messages_file, "JSON file of messages");
  messages->type_name("FILE");
  app.add_flag("--chat", target.chat, "Wrap the raw text as a user's message");
  for (CLI::Option* option : add_system(app, target.system)) option->excludes(messages);
  return source;
}

}  // namespace ember
