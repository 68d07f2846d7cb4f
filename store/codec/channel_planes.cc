// Channel planes: building and taking apart of payloads, run by run.
#include "store/codec/channel_planes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/check.h"

namespace ember {
namespace {

constexpr size_t kShapeBytes = 8;
static_assert(sizeof(PlaneShape) == kShapeBytes);

// Sizes that follow from the shape and the raw bytes.
struct Plan {
  Plan(const PlaneShape& shape, size_t raw_bytes)
      : channels(shape.channels), tokens(shape.tokens), values(raw_bytes / 2) {
    layers = values / (channels * tokens);
    rows = layers * ((tokens + kRowTokens - 1) / kRowTokens) * channels;
    head_rows = (rows + kRowTokens - 1) / kRowTokens;
  }
  size_t fixed_bytes() const { return kShapeBytes + 4 * head_rows + values; }

  size_t channels;
  size_t tokens;
  size_t values;
  size_t layers;
  size_t rows;
  size_t head_rows;
};

// Grows and never shrinks: a thread codes groups of one size again and again.
struct Scratch {
  std::vector<uint8_t> exponents;  // of one run, [channels][64]
  std::vector<uint8_t> heads;      // largest of all rows, then classes, each to a multiple of 64
  std::vector<uint8_t> bits;
};

uint8_t* room(std::vector<uint8_t>& bytes, size_t size) {
  if (bytes.size() < size) bytes.resize(size);
  return bytes.data();
}

Scratch& scratch() {
  thread_local Scratch mine;
  return mine;
}

RowHeads heads_of_rows(const Plan& plan, Scratch& memory) {
  uint8_t* bytes = room(memory.heads, 2 * plan.head_rows * kRowTokens);
  return {bytes, bytes + plan.head_rows * kRowTokens};
}

// The runs of a group, in the order of their rows: do(first value, tokens, first row).
template <typename Do>
void for_each_run(const Plan& plan, Do&& run) {
  size_t value = 0;
  size_t row = 0;
  for (size_t layer = 0; layer < plan.layers; ++layer) {
    for (size_t token = 0; token < plan.tokens; token += kRowTokens) {
      const size_t tokens = std::min(kRowTokens, plan.tokens - token);
      run(value, tokens, row);
      value += tokens * plan.channels;
      row += plan.channels;
    }
  }
}

// Codes `count` bytes as rows of 64; `values` are padded to whole rows with zeros.
void encode_heads(const RowCode& code, const uint8_t* values, size_t count, RowHeads heads,
                  BitWriter& bits) {
  const size_t whole = count / kRowTokens;
  code.encode(values, whole, kRowTokens, heads, bits);
  if (count % kRowTokens == 0) return;
  code.encode(values + whole * kRowTokens, 1, count % kRowTokens,
              {heads.largest + whole, heads.classes + whole}, bits);
}

// Decodes rows from bytes of which none behind the last may be touched: near the end from a copy
// with slack behind it.
class RowsReader {
 public:
  explicit RowsReader(std::string_view bytes)
      : bytes_(bytes), bits_(data(), early_limit(bytes.size())) {}
  RowsReader(const RowsReader&) = delete;
  RowsReader& operator=(const RowsReader&) = delete;

  // False: the bits ended before the rows did.
  bool decode(const RowCode& code, RowHeads heads, size_t rows, size_t tokens, uint8_t* values) {
    size_t done = bytes_.size() <= kSlack ? 0 : code.decode(heads, rows, tokens, bits_, values);
    if (done == rows) return true;
    if (!in_copy_) enter_copy();
    heads.largest += done;
    heads.classes += done;
    return code.decode(heads, rows - done, tokens, bits_, values + done * kRowTokens) ==
           rows - done;
  }
  // Whole bytes taken.
  size_t taken() const { return copied_from_ + (bits_.position() + 7) / 8; }

 private:
  static constexpr size_t kSlack = kMostDamagedRowBits / 8 + 1 + kReadSlack;

  static uint64_t early_limit(size_t size) { return size <= kSlack ? 0 : 8 * (size - kSlack); }
  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(bytes_.data()); }

  void enter_copy() {
    in_copy_ = true;
    const uint64_t position = bits_.position();
    copied_from_ = std::min<size_t>(position / 8, bytes_.size());
    const size_t left = bytes_.size() - copied_from_;
    copy_.fill(0);
    std::memcpy(copy_.data(), data() + copied_from_, left);
    bits_ = BitReader(copy_.data(), 8 * left);
    bits_.take(position % 8);
  }

  std::string_view bytes_;
  BitReader bits_;
  bool in_copy_ = false;
  size_t copied_from_ = 0;
  std::array<uint8_t, 3 * kSlack> copy_;
};

Error damaged(const std::string& what) {
  return {ErrorCode::kCorruption, "coded group: " + what};
}

}  // namespace

bool fits(const PlaneShape& shape, size_t raw_bytes) {
  if (shape.channels == 0 || shape.tokens == 0) return false;
  const uint64_t layer_bytes = uint64_t{shape.channels} * shape.tokens * 2;
  return layer_bytes <= raw_bytes && raw_bytes % layer_bytes == 0;
}

std::string encode_channel_planes(const RowCode& code, const PlaneShape& shape, ConstBytes raw) {
  EMBER_CHECK(fits(shape, raw.size()), "a group of another shape");
  const Plan plan(shape, raw.size());
  Scratch& memory = scratch();
  const RowHeads heads = heads_of_rows(plan, memory);
  uint8_t* exponents = room(memory.exponents, plan.channels * kRowTokens);
  uint8_t* row_bits = room(memory.bits, plan.rows * kMostRowBytes + kWriteSlack);
  const size_t most_head_bytes = 2 * plan.head_rows * kMostRowBytes + kWriteSlack;
  std::string payload(plan.fixed_bytes() + most_head_bytes, '\0');
  auto* out = reinterpret_cast<uint8_t*>(payload.data());
  std::memcpy(out, &shape, kShapeBytes);
  uint8_t* rest = out + kShapeBytes + 4 * plan.head_rows;

  BitWriter rows(row_bits);
  for_each_run(plan, [&](size_t value, size_t tokens, size_t row) {
    if (tokens < kRowTokens) std::memset(exponents, 0, plan.channels * kRowTokens);
    code.split(raw.data() + 2 * value, tokens, plan.channels, exponents, rest + value);
    code.encode(exponents, plan.channels, tokens, {heads.largest + row, heads.classes + row},
                rows);
  });
  const size_t row_bytes = rows.finish();

  const size_t padding = plan.head_rows * kRowTokens - plan.rows;
  std::memset(heads.largest + plan.rows, 0, padding);
  std::memset(heads.classes + plan.rows, 0, padding);
  uint8_t* top = out + kShapeBytes;
  uint8_t* classes = top + 2 * plan.head_rows;
  BitWriter head_bits(out + plan.fixed_bytes());
  encode_heads(code, heads.largest, plan.rows, {top, classes}, head_bits);
  encode_heads(code, heads.classes, plan.rows,
               {top + plan.head_rows, classes + plan.head_rows}, head_bits);
  const size_t head_bytes = head_bits.finish();
  if (plan.fixed_bytes() + head_bytes + row_bytes >= raw.size()) return {};
  payload.resize(plan.fixed_bytes() + head_bytes);
  payload.append(reinterpret_cast<const char*>(row_bits), row_bytes);
  return payload;
}

Status decode_channel_planes(const RowCode& code, std::string_view payload, Bytes raw) {
  if (payload.size() < kShapeBytes) {
    return damaged("found " + std::to_string(payload.size()) + " bytes");
  }
  const auto shape = load_unaligned<PlaneShape>(payload.data());
  if (!fits(shape, raw.size())) {
    return damaged("it says " + std::to_string(shape.tokens) + " tokens of " +
                   std::to_string(shape.channels) + " values, which do not make " +
                   std::to_string(raw.size()) + " raw bytes");
  }
  const Plan plan(shape, raw.size());
  if (payload.size() < plan.fixed_bytes()) {
    return damaged("found " + std::to_string(payload.size()) + " bytes, expected at least " +
                   std::to_string(plan.fixed_bytes()));
  }
  Scratch& memory = scratch();
  const RowHeads heads = heads_of_rows(plan, memory);
  uint8_t* exponents = room(memory.exponents, plan.channels * kRowTokens);
  const size_t head_rows = plan.head_rows;
  std::vector<uint8_t> head_heads(4 * head_rows);  // RowHeads are of bytes that may be written
  std::memcpy(head_heads.data(), payload.data() + kShapeBytes, head_heads.size());
  const auto* rest = reinterpret_cast<const uint8_t*>(payload.data()) + kShapeBytes + 4 * head_rows;

  std::string_view bits = payload.substr(plan.fixed_bytes());
  RowsReader head_reader(bits);
  bool whole = true;
  for (size_t part = 0; part < 2 && whole; ++part) {
    RowHeads from = {head_heads.data() + part * head_rows,
                     head_heads.data() + (2 + part) * head_rows};
    uint8_t* to = part == 0 ? heads.largest : heads.classes;
    const size_t full = plan.rows / kRowTokens;
    whole = head_reader.decode(code, from, full, kRowTokens, to);
    if (whole && plan.rows % kRowTokens != 0) {
      whole = head_reader.decode(code, {from.largest + full, from.classes + full}, 1,
                                 plan.rows % kRowTokens, to + full * kRowTokens);
    }
  }
  if (!whole || head_reader.taken() > bits.size()) return damaged("its heads are cut");
  RowsReader reader(bits.substr(head_reader.taken()));
  for_each_run(plan, [&](size_t value, size_t tokens, size_t row) {
    whole = whole && reader.decode(code, {heads.largest + row, heads.classes + row},
                                   plan.channels, tokens, exponents);
    if (whole) {
      code.merge(exponents, rest + value, tokens, plan.channels, raw.data() + 2 * value);
    }
  });
  if (!whole || head_reader.taken() + reader.taken() != bits.size()) {
    return damaged("its rows end elsewhere than its bytes");
  }
  return {};
}

}  // namespace ember
