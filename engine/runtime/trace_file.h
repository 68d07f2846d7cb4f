// Trace file: a trace in the JSON form that Perfetto (ui.perfetto.dev) and Chrome open.
//
// Journey    trace -> [trace_file] -> a file
// Source     Trace Event Format: complete events ("X"), one track a request, one for steps and one
//            for layers
#pragma once

#include <string>

#include "base/result.h"
#include "engine/runtime/trace.h"

namespace ember {

std::string trace_json(const Trace& trace);
// Errors: kIo naming the file.
Status write_trace(const Trace& trace, const std::string& path);

}  // namespace ember
