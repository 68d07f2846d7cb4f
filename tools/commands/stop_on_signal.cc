// Handlers that note a signal, once.
#include "tools/commands/stop_on_signal.h"

#include <csignal>
#include <initializer_list>

namespace ember {
namespace {

volatile std::sig_atomic_t asked_to_stop = 0;

void catch_with(void (*handler)(int)) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace

StopOnSignal::StopOnSignal() {
  asked_to_stop = 0;
  catch_with([](int) { asked_to_stop = 1; });
}

StopOnSignal::~StopOnSignal() { catch_with(SIG_DFL); }

bool StopOnSignal::asked() { return asked_to_stop != 0; }

}  // namespace ember
