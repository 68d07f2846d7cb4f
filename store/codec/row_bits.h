// Row bits: writing and reading of bit strings of up to 64 bits, lowest bit first.
//
// Journey    row_code -> [row_bits] -> channel_planes' stream
// Invariant  a reader touches at most kReadSlack bytes behind the last bit that it was asked for; a
//            writer at most kWriteSlack behind what it wrote
// Threads    one object a thread
// Not here   what the bits mean (store/codec/row_code.h)
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ember {

inline constexpr size_t kReadSlack = 16;
inline constexpr size_t kWriteSlack = 8;

// Always inlined: the same functions are compiled for several levels of instructions, and a linker
// that kept one copy of them might keep the one that this CPU does not have.
#define EMBER_INLINE [[gnu::always_inline]] inline

class BitWriter {
 public:
  explicit BitWriter(uint8_t* to) : begin_(to), to_(to) {}

  // Appends the lowest `count` bits of `bits`, at most 64; those above must be 0.
  EMBER_INLINE void put(uint64_t bits, unsigned count) {
    const uint64_t low = pending_ | bits << filled_;
    std::memcpy(to_, &low, sizeof low);
    const uint64_t high = (bits >> 1) >> (63 - filled_);
    const unsigned total = filled_ + count;
    pending_ = total >= 64 ? high : low;
    to_ += (total >> 6) * sizeof low;
    filled_ = total & 63;
  }
  // Writes out what is pending, zeros up to a whole byte; returns the bytes written in all.
  size_t finish() {
    std::memcpy(to_, &pending_, sizeof pending_);
    return static_cast<size_t>(to_ - begin_) + (filled_ + 7) / 8;
  }

 private:
  uint8_t* begin_;
  uint8_t* to_;
  uint64_t pending_ = 0;
  unsigned filled_ = 0;  // below 64
};

class BitReader {
 public:
  // Bits before `limit` may be taken; who takes more asks within() first and brings the slack.
  BitReader(const uint8_t* from, uint64_t limit) : from_(from), limit_(limit) {}

  // The next 64 bits.
  EMBER_INLINE uint64_t ahead() const {
    uint64_t low;
    uint64_t high;
    const uint8_t* at = from_ + (position_ >> 3);
    std::memcpy(&low, at, sizeof low);
    std::memcpy(&high, at + sizeof low, sizeof high);
    const unsigned shift = position_ & 7;
    return low >> shift | (high << 1) << (63 - shift);
  }
  // The same; the next time from `count` bits farther on, at most 64.
  EMBER_INLINE uint64_t take(unsigned count) {
    const uint64_t bits = ahead();
    position_ += count;
    return bits;
  }
  EMBER_INLINE uint64_t position() const { return position_; }  // bits taken so far
  EMBER_INLINE bool within() const { return position_ <= limit_; }

 private:
  const uint8_t* from_;
  uint64_t limit_;
  uint64_t position_ = 0;
};

}  // namespace ember
