// The one file that knows ncurses.
#include "tools/commands/look/top_screen.h"

// Functions, no macros: some have the names of ours.
#define NCURSES_NOMACROS 1

#include <langinfo.h>
#include <ncurses.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <string>

namespace ember {
namespace {

class NcursesScreen final : public TopScreen {
 public:
  explicit NcursesScreen(SCREEN* screen) : screen_(screen) {
    unicode_ = std::string(::nl_langinfo(CODESET)) == "UTF-8";
    ::cbreak();
    ::noecho();
    ::curs_set(0);
    ::keypad(stdscr, TRUE);
    ::set_escdelay(25);
    const char* no_colour = std::getenv("NO_COLOR");
    colour_ = (no_colour == nullptr || *no_colour == '\0') && ::has_colors();
    if (!colour_) return;
    ::start_color();
    ::use_default_colors();
    ::init_pair(kWarningPair, COLOR_RED, -1);
  }
  ~NcursesScreen() override {
    ::endwin();
    ::delscreen(screen_);
  }

  size_t width() const override { return static_cast<size_t>(std::max(1, ::getmaxx(stdscr))); }
  size_t height() const override { return static_cast<size_t>(std::max(1, ::getmaxy(stdscr))); }
  bool unicode() const override { return unicode_; }

  void draw(const std::vector<TopLine>& lines) override {
    ::erase();
    for (size_t i = 0; i < height(); ++i) {
      // Characters of two columns may have carried the line before into this one.
      ::wmove(stdscr, static_cast<int>(i), 0);
      ::wclrtoeol(stdscr);
      if (i >= lines.size()) continue;
      const attr_t look = look_of(lines[i].style);
      ::wattr_on(stdscr, look, nullptr);
      ::waddstr(stdscr, lines[i].text.c_str());
      ::wattr_off(stdscr, look, nullptr);
    }
    ::refresh();
  }

  TopKey key(int timeout_ms) override {
    // A terminal that is gone is readable at once, and for ever.
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (::poll(&input, 1, 0) > 0 && (input.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
      return TopKey::kGone;
    }
    ::wtimeout(stdscr, timeout_ms);
    switch (::wgetch(stdscr)) {
      case 'q':
      case 'Q':
        return TopKey::kQuit;
      case ' ':
        return TopKey::kPause;
      case '+':
      case '=':
        return TopKey::kLonger;
      case '-':
        return TopKey::kShorter;
      case 'h':
      case '?':
        return TopKey::kHelp;
      case KEY_RESIZE:
        return TopKey::kResized;
      default:
        return TopKey::kNone;
    }
  }

 private:
  static constexpr short kWarningPair = 1;

  attr_t look_of(TopStyle style) const {
    switch (style) {
      case TopStyle::kPlain:
        return A_NORMAL;
      case TopStyle::kTitle:
        return A_REVERSE;
      case TopStyle::kHead:
        return A_BOLD;
      case TopStyle::kWarning:
        break;
    }
    return colour_ ? static_cast<attr_t>(COLOR_PAIR(kWarningPair)) : static_cast<attr_t>(A_BOLD);
  }

  SCREEN* screen_;
  bool unicode_ = false;
  bool colour_ = false;
};

std::string term_name() {
  const char* name = std::getenv("TERM");
  return name == nullptr ? "" : name;
}

}  // namespace

Result<std::unique_ptr<TopScreen>> TopScreen::open() {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) {
    return Error{ErrorCode::kInvalidArgument,
                 "top draws on a terminal, and there is none; --once prints one frame as text, "
                 "--json an object an interval"};
  }
  std::setlocale(LC_CTYPE, "");
  SCREEN* screen = ::newterm(nullptr, stdout, stdin);
  if (screen == nullptr) {
    return Error{ErrorCode::kInvalidArgument,
                 "TERM=" + term_name() +
                     ": no terminal of that name is known here; --once prints one frame as text"};
  }
  ::set_term(screen);
  if (::tigetstr("cup") == nullptr) {
    ::endwin();
    ::delscreen(screen);
    return Error{ErrorCode::kInvalidArgument,
                 "TERM=" + term_name() +
                     ": such a terminal's cursor cannot be moved; --once prints one frame as text"};
  }
  return std::unique_ptr<TopScreen>(std::make_unique<NcursesScreen>(screen));
}

}  // namespace ember
