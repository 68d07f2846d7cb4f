// convert: runs the cast with a progress bar and says what became of it.
#include "tools/commands/model/convert.h"

#include <nlohmann/json.hpp>

#include "tools/commands/progress.h"

namespace ember {

Status run_convert(const ConvertOptions& options, std::ostream& out) {
  Progress progress;
  CastOptions cast = options.cast;
  cast.progress = [&progress](double done) { progress.show("convert", done); };
  const Result<CastReport> report = cast_checkpoint(cast);
  progress.clear();
  if (!report.ok()) return report.error();
  if (options.json) {
    const nlohmann::ordered_json json = {{"tensors", report->tensors},
                                         {"cast", report->cast},
                                         {"shards", report->shards},
                                         {"to", cast.to}};
    out << json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
  } else {
    out << cast.to << ": " << report->tensors << " tensors in " << report->shards << " files, "
        << report->cast << " of them cast" << std::endl;
  }
  return {};
}

}  // namespace ember
