// Safetensors: what is written comes back; every lie of a header is refused by name.
#include "engine/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include "base/prng.h"
#include "tests/support/temp_folder.h"

namespace ember::testing {
namespace {

std::string with_header(const std::string& header, size_t data_bytes) {
  std::string file;
  append_value(file, static_cast<uint64_t>(header.size()));
  return file + header + std::string(data_bytes, '\x11');
}

class SafetensorsFileTest : public ::testing::Test {
 protected:
  // The error of a file of these bytes.
  Error refused(const std::string& bytes) {
    const std::string path = folder_ / "x.safetensors";
    write_file(path, bytes);
    auto opened = SafetensorsFile::open(path);
    if (opened.ok()) return {ErrorCode::kBusy, "it was accepted"};
    EXPECT_NE(opened.error().message.find(path), std::string::npos) << opened.error().message;
    return opened.error();
  }
  void expect_refused(const std::string& bytes, ErrorCode code, const std::string& part) {
    const Error error = refused(bytes);
    EXPECT_EQ(error.code, code) << error.message;
    EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
  }
  TempFolder folder_;
};

std::string written(const TempFolder& folder) {
  const float floats[] = {1.5f, -2.0f, 3.25f};
  const uint16_t halves[] = {1, 2, 3, 4};
  const std::string path = folder / "written.safetensors";
  EXPECT_TRUE(
      write_safetensors(path, {{"b", DType::kBf16, {2, 2}, std::as_bytes(std::span(halves))},
                               {"a \"quoted\"", DType::kF32, {3}, std::as_bytes(std::span(floats))},
                               {"empty", DType::kF32, {0, 7}, {}}})
          .ok());
  return path;
}

TEST_F(SafetensorsFileTest, WrittenTensorsComeBack) {
  const std::string path = written(folder_);
  const auto file = std::move(SafetensorsFile::open(path)).value();
  ASSERT_EQ(file->tensors().size(), 3u);
  const TensorView& a = file->tensors().at("a \"quoted\"");
  EXPECT_EQ(a.dtype, DType::kF32);
  EXPECT_EQ(a.shape, std::vector<size_t>{3});
  EXPECT_EQ(load_unaligned<float>(a.bytes.data() + 8), 3.25f);
  EXPECT_EQ(file->tensors().at("b").shape, (std::vector<size_t>{2, 2}));
  EXPECT_EQ(file->tensors().at("empty").elements(), 0u);
}

TEST_F(SafetensorsFileTest, AFileCutAnywhereIsRefused) {
  const std::string whole = read_file(written(folder_));
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const ErrorCode code = refused(whole.substr(0, bytes)).code;
    ASSERT_EQ(code, ErrorCode::kCorruption) << bytes << " bytes of " << whole.size();
  }
  expect_refused(whole + "x", ErrorCode::kCorruption, "bytes of data");
}

TEST_F(SafetensorsFileTest, DamagedHeadersNeverCrash) {
  const std::string whole = read_file(written(folder_));
  Prng prng(7);
  for (int round = 0; round < 500; ++round) {
    std::string damaged = whole;
    const auto at = static_cast<size_t>(prng.below(damaged.size()));
    damaged[at] = static_cast<char>(prng.below(256));
    const std::string path = folder_ / "damaged.safetensors";
    write_file(path, damaged);
    const auto opened = SafetensorsFile::open(path);
    if (!opened.ok()) {
      EXPECT_FALSE(opened.error().message.empty());
    }
  }
}

TEST_F(SafetensorsFileTest, LyingHeadersAreRefusedByTensor) {
  const auto entry = [](const std::string& dtype, const std::string& shape,
                        const std::string& offsets) {
    return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
           offsets + "}}";
  };
  const auto corrupt = ErrorCode::kCorruption;
  expect_refused(with_header(entry("F32", "[2]", "[0,4]"), 4), corrupt, "tensor t: found 4 bytes");
  expect_refused(with_header(entry("F32", "[2]", "[0,8]"), 4), corrupt, "it is cut");
  expect_refused(with_header(entry("F32", "[1]", "[4,8]"), 8), corrupt, "hole");
  expect_refused(with_header(entry("F32", "[1]", "[8,4]"), 8), corrupt, "begin <= end");
  expect_refused(with_header(entry("F32", "[1]", "[0,4]"), 8), corrupt, "expected 4");
  expect_refused(with_header(entry("F32", "[4294967296,4294967296,4]", "[0,0]"), 0), corrupt,
                 "more than 2^64");
  expect_refused(with_header(entry("F32", "[-1]", "[0,4]"), 4), ErrorCode::kInvalidArgument,
                 "shape");
  expect_refused(with_header(entry("C64", "[1]", "[0,8]"), 8), ErrorCode::kUnsupported, "C64");
  expect_refused(with_header("[1,2,3]", 0), corrupt, "'{'");
  expect_refused(with_header("{\"t\":", 0), corrupt, "JSON");
  std::string huge;
  append_value(huge, ~uint64_t{0});
  expect_refused(huge + "{}", corrupt, "header length");
}

TEST_F(SafetensorsFileTest, OverlapsAndDoubleKeysAreRefused) {
  const std::string entry = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  expect_refused(with_header("{\"a\":" + entry + ",\"b\":" + entry + "}", 4),
                 ErrorCode::kCorruption, "overlap");
  expect_refused(with_header("{\"a\":" + entry + ",\"a\":" + entry + "}", 4),
                 ErrorCode::kCorruption, "stands twice");
}

TEST_F(SafetensorsFileTest, AnAbsentFileIsAnIoError) {
  const auto opened = SafetensorsFile::open(folder_ / "absent");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace ember::testing
