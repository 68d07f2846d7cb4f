// Style is a test: limits, directions and blocks that every file of the tree keeps.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace ember {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostLines = 600;
constexpr size_t kMostColumns = 100;
constexpr size_t kMostReadmeLines = 60;
constexpr size_t kBlockLines = 20;  // the opening block of a header stands within these

const std::vector<std::string> kModules = {"base",   "prefix_index", "kernels", "store",
                                           "engine", "service",      "tools"};

// Which folders a folder may include from, itself among them.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"base", {"base"}},
    {"prefix_index", {"base", "prefix_index"}},
    {"kernels", {"base", "kernels"}},
    {"store", {"base", "prefix_index", "kernels", "store"}},
    {"engine", {"base", "prefix_index", "kernels", "store", "engine"}},
    {"service", {"base", "prefix_index", "store", "service"}},
    {"tools", {"base", "prefix_index", "kernels", "store", "engine", "service", "tools"}},
};

// Each third-party library, by how its includes begin, and the files that may know it: a whole
// path, or a folder's prefix of one. None of these is a module's public header.
struct Library {
  std::string_view include;
  std::vector<std::string_view> files;
};
const std::vector<Library> kLibraries = {
    {"<CLI/",
     {"tools/emberkv.cc", "tools/command_docs.", "tools/command_notes.",
      "tools/foreign_commands.cc", "tools/help_form.",
      "tools/inspection_commands.", "tools/model_flags.", "tools/prompt_flags.",
      "tools/store_flags.", "tools/talk_flags.", "tools/make_model_main.cc",
      "tools/journey_demo/main.cc", "bench/replay/main.cc", "bench/bench_program.",
      "bench/engine_bench.cc", "bench/needle.cc"}},
    {"<nlohmann/",
     {"engine/checkpoint/", "engine/text/", "engine/runtime/trace_file.cc",
      "store/replay/public_trace.cc", "store/transfer/transfer_json.cc", "tools/", "tests/",
      "bench/"}},
    {"<archive", {"store/transfer/tar_stream.cc"}},
    {"<rocksdb/", {"store/disk/", "tests/store/", "tests/support/"}},
    {"<openssl/", {"store/disk/seal.cc"}},
    {"<zstd", {"bench/"}},
    {"<xxhash",
     {"prefix_index/block_hash.cc", "engine/checkpoint/fingerprint.cc",
      "engine/text/template_text.cc", "tests/prefix_index/block_hash_test.cc"}},
    {"<onig", {"engine/text/regex.cc", "engine/text/regex_properties.cc"}},
    {"<unicode/", {"engine/text/unicode_forms.cc", "tools/commands/text_form.cc"}},
    {"<zlib", {"engine/text/", "tests/engine/text/", "store/replay/public_trace.cc"}},
    {"<ncurses", {"tools/commands/look/top_screen.cc"}},
    {"<oneapi/", {"kernels/"}},
    {"<dnnl", {"kernels/"}},
};

std::string source_dir() { return EMBER_SOURCE_DIR; }

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

size_t columns(std::string_view line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;  // not a continuation of a character
  }));
}

// Paths relative to the root of every file that we wrote: no builds, no data, no weights.
std::vector<std::string> our_files() {
  std::vector<std::string> files;
  const fs::path root = source_dir();
  for (fs::recursive_directory_iterator it(root), end; it != end; ++it) {
    const std::string name = it->path().filename();
    const std::string path = fs::relative(it->path(), root);
    const bool skipped = name == ".git" || path.rfind("build", 0) == 0 || path == "tests/data" ||
                         path == "LICENSE" || name.ends_with(".pyc");
    if (skipped) {
      if (it->is_directory()) it.disable_recursion_pending();
      continue;
    }
    const bool model_data = path.rfind("models/", 0) == 0 && name != "README.md";
    if (it->is_regular_file() && !model_data) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool is_source(const std::string& path) { return path.ends_with(".h") || path.ends_with(".cc"); }

std::string top_folder(const std::string& path) { return path.substr(0, path.find('/')); }

bool in_module(const std::string& path) {
  return std::find(kModules.begin(), kModules.end(), top_folder(path)) != kModules.end();
}

// What stands behind #include, with its quotes or brackets; empty for other lines.
std::string_view included(std::string_view line) {
  constexpr std::string_view kInclude = "#include ";
  return line.substr(0, kInclude.size()) == kInclude ? line.substr(kInclude.size())
                                                     : std::string_view();
}

TEST(TidyTest, FilesAndLinesAreShort) {
  for (const std::string& path : our_files()) {
    const bool checked = is_source(path) || path.ends_with(".cmake") ||
                         path.ends_with("CMakeLists.txt") ||
                         (path.rfind("tools/", 0) == 0 && !path.ends_with(".md"));
    if (!checked) continue;
    const std::vector<std::string> lines = lines_of(fs::path(source_dir()) / path);
    EXPECT_LE(lines.size(), kMostLines) << path;
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_LE(columns(lines[i]), kMostColumns) << path << ":" << i + 1;
      EXPECT_EQ(lines[i].find('\t'), std::string::npos) << path << ":" << i + 1 << ": a tab";
      EXPECT_FALSE(lines[i].ends_with(' ')) << path << ":" << i + 1 << ": blanks at the end";
    }
  }
}

TEST(TidyTest, IncludesPointDownwards) {
  for (const std::string& path : our_files()) {
    if (!is_source(path) || !in_module(path)) continue;
    for (const std::string& line : lines_of(fs::path(source_dir()) / path)) {
      const std::string_view name = included(line);
      if (name.empty() || name[0] != '"') continue;
      const std::string from = top_folder(std::string(name.substr(1)));
      EXPECT_TRUE(kMayInclude.at(top_folder(path)).contains(from)) << path << " includes " << name;
    }
  }
}

TEST(TidyTest, ThirdPartyLibrariesAreKnownToFewFiles) {
  for (const std::string& path : our_files()) {
    if (!is_source(path)) continue;
    for (const std::string& line : lines_of(fs::path(source_dir()) / path)) {
      const std::string_view name = included(line);
      for (const Library& library : kLibraries) {
        if (name.substr(0, library.include.size()) != library.include) continue;
        const bool named =
            std::any_of(library.files.begin(), library.files.end(),
                        [&path](std::string_view file) { return path.rfind(file, 0) == 0; });
        EXPECT_TRUE(named) << path << " includes " << name;
      }
    }
  }
}

// The headers that a module's CMakeLists.txt names as public know no library but the standard one.
TEST(TidyTest, PublicHeadersIncludeNoThirdPartyHeader) {
  size_t headers = 0;
  for (const std::string& path : our_files()) {
    if (!path.ends_with("CMakeLists.txt") || !in_module(path)) continue;
    const fs::path folder = (fs::path(source_dir()) / path).parent_path();
    bool in_headers = false;
    for (const std::string& line : lines_of(fs::path(source_dir()) / path)) {
      std::string word;
      std::istringstream words(line);
      while (words >> word) {
        while (!word.empty() && word.back() == ')') word.pop_back();
        if (word == "HEADERS") in_headers = true;
        if (word == "DEPS" || word == "LIBRARIES" || word == "SOURCES") in_headers = false;
        if (!in_headers || !word.ends_with(".h")) continue;
        ++headers;
        for (const std::string& header_line : lines_of(folder / word)) {
          const std::string_view name = included(header_line);
          for (const Library& library : kLibraries) {
            EXPECT_NE(name.substr(0, library.include.size()), library.include)
                << folder / word << " includes " << name;
          }
        }
      }
    }
  }
  EXPECT_GT(headers, 30u);
}

TEST(TidyTest, EveryTestFileIsRegistered) {
  size_t tests = 0;
  for (const std::string& path : our_files()) {
    if (!path.ends_with("_test.cc")) continue;
    ++tests;
    bool registered = false;
    for (const std::string& list : our_files()) {
      if (!list.ends_with("CMakeLists.txt") || list.rfind("tests/", 0) != 0) continue;
      const fs::path folder = fs::path(list).parent_path();
      for (const std::string& line : lines_of(fs::path(source_dir()) / list)) {
        std::string word;
        std::istringstream words(line);
        while (words >> word) {
          while (!word.empty() && word.back() == ')') word.pop_back();
          registered = registered || (folder / word).lexically_normal() == fs::path(path);
        }
      }
    }
    EXPECT_TRUE(registered) << path << " is in no CMakeLists.txt";
  }
  EXPECT_GT(tests, 20u);
}

TEST(TidyTest, EveryModuleHeaderTellsItsJourney) {
  for (const std::string& path : our_files()) {
    if (!path.ends_with(".h") || !in_module(path)) continue;
    const std::vector<std::string> lines = lines_of(fs::path(source_dir()) / path);
    ASSERT_FALSE(lines.empty()) << path;
    EXPECT_EQ(lines[0].rfind("// ", 0), 0u) << path << ": says first what it is";
    bool journey = false;
    for (size_t i = 0; i < std::min(lines.size(), kBlockLines) && lines[i].rfind("//", 0) == 0;
         ++i) {
      journey = journey || lines[i].rfind("// Journey ", 0) == 0;
    }
    EXPECT_TRUE(journey) << path << ": no line '// Journey'";
  }
}

TEST(TidyTest, EverySourceSaysFirstWhatItIs) {
  for (const std::string& path : our_files()) {
    if (!path.ends_with(".cc")) continue;
    const std::vector<std::string> lines = lines_of(fs::path(source_dir()) / path);
    ASSERT_FALSE(lines.empty()) << path;
    EXPECT_EQ(lines[0].rfind("// ", 0), 0u) << path;
  }
}

// Words of unfinished work and of places that are not part of the project, put together here so
// that this file does not contain them.
TEST(TidyTest, NothingIsLeftForLater) {
  const std::vector<std::string> words = {std::string("TO") + "DO", std::string("FIX") + "ME",
                                          std::string(3, 'X'), std::string("/wo") + "rk/",
                                          std::string("../sha") + "red"};
  for (const std::string& path : our_files()) {
    const std::vector<std::string> lines = lines_of(fs::path(source_dir()) / path);
    for (size_t i = 0; i < lines.size(); ++i) {
      for (const std::string& word : words) {
        // mkdtemp's six letters are no remark.
        const bool found = lines[i].find(word) != std::string::npos &&
                           lines[i].find(std::string(6, 'X')) == std::string::npos;
        EXPECT_FALSE(found) << path << ":" << i + 1 << ": " << word;
      }
    }
  }
}

TEST(TidyTest, EveryFolderHasAShortReadme) {
  std::set<std::string> folders = {"bench", "docs", "models/demo", "tests"};
  for (const std::string& module : kModules) folders.insert(module);
  for (const auto& part : fs::directory_iterator(fs::path(source_dir()) / "engine")) {
    if (part.is_directory()) folders.insert("engine/" + part.path().filename().string());
  }
  for (const std::string& folder : folders) {
    const std::vector<std::string> lines = lines_of(fs::path(source_dir()) / folder / "README.md");
    EXPECT_FALSE(lines.empty()) << folder << ": no README.md";
    EXPECT_LT(lines.size(), kMostReadmeLines) << folder;
  }
}

}  // namespace
}  // namespace ember
