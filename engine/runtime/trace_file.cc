// Events as JSON: processes are the rooms of the engine, threads its tracks.
#include "engine/runtime/trace_file.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRequests = 1;
constexpr int kDevice = 2;

struct Track {
  int process = kRequests;
  uint64_t thread = 0;
};

// Groups overlap each other and the restore, so they have tracks of their own.
Track track_of(const TraceEvent& event) {
  constexpr uint64_t kGroupTracks = 1u << 20;
  switch (event.kind) {
    case TraceKind::kStep:
      return {kDevice, 1};
    case TraceKind::kLayer:
      return {kDevice, 2};
    case TraceKind::kGroup:
      return {kRequests, kGroupTracks * (event.value + 1) + event.id};
    default:
      return {kRequests, event.id};
  }
}

const char* value_name(TraceKind kind) {
  switch (kind) {
    case TraceKind::kGroup:
      return "group";
    case TraceKind::kLayer:
      return "layer";
    default:
      return "tokens";
  }
}

std::string event_name(const TraceEvent& event) {
  const bool numbered = event.kind == TraceKind::kGroup || event.kind == TraceKind::kLayer;
  const std::string name = trace_kind_name(event.kind);
  return numbered ? name + " " + std::to_string(event.value) : name;
}

Json named(const char* what, int process, uint64_t thread, const std::string& name) {
  return {{"ph", "M"},       {"name", what},        {"pid", process},
          {"tid", thread},   {"args", {{"name", name}}}};
}

std::string track_name(const TraceEvent& event) {
  switch (event.kind) {
    case TraceKind::kStep:
      return "steps";
    case TraceKind::kLayer:
      return "layers";
    case TraceKind::kGroup:
      return "request " + std::to_string(event.id) + ", group " + std::to_string(event.value);
    default:
      return "request " + std::to_string(event.id);
  }
}

}  // namespace

std::string trace_json(const Trace& trace) {
  Json events = Json::array();
  events.push_back(named("process_name", kRequests, 0, "requests"));
  events.push_back(named("process_name", kDevice, 0, "device"));
  std::set<std::pair<int, uint64_t>> known;
  for (const TraceEvent& event : trace.events()) {
    const Track track = track_of(event);
    if (known.emplace(track.process, track.thread).second) {
      events.push_back(named("thread_name", track.process, track.thread, track_name(event)));
    }
    const char* id_name = track.process == kDevice ? "step" : "request";
    events.push_back({{"ph", "X"},
                      {"name", event_name(event)},
                      {"pid", track.process},
                      {"tid", track.thread},
                      {"ts", event.begin_us},
                      {"dur", event.end_us - event.begin_us},
                      {"args", {{id_name, event.id}, {value_name(event.kind), event.value}}}});
  }
  const Json file = {{"traceEvents", std::move(events)},
                     {"displayTimeUnit", "ms"},
                     {"otherData", {{"dropped_events", trace.dropped()}}}};
  return file.dump();
}

Status write_trace(const Trace& trace, const std::string& path) {
  std::ofstream file(path, std::ios::trunc);
  file << trace_json(trace) << '\n';
  file.close();
  if (!file) return {ErrorCode::kIo, path + ": the trace cannot be written there"};
  return {};
}

}  // namespace ember
