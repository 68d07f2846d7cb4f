// Table check: footer, index of meta blocks, properties block.
#include "store/disk/table_check.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/bytes.h"

namespace ember {
namespace {

using rocksdb::IOStatus;

constexpr uint64_t kFooterBytes = 53;  // of all versions since 1
constexpr size_t kHandlesOffset = 1;   // behind the kind of checksum
constexpr uint64_t kMostBlockBytes = 1u << 20;
constexpr std::string_view kPropertiesName = "rocksdb.properties";
constexpr uint32_t kHashIndexBit = uint32_t{1} << 31;  // of a block's last number

struct BlockPlace {
  uint64_t offset = 0;
  uint64_t size = 0;
};

// A number of 7 bits a byte, lowest first; nothing when it does not end.
std::optional<uint64_t> take_number(std::string_view& bytes) {
  uint64_t number = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    number |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return number;
  }
  return std::nullopt;
}

std::optional<BlockPlace> take_place(std::string_view& bytes) {
  const std::optional<uint64_t> offset = take_number(bytes);
  const std::optional<uint64_t> size = take_number(bytes);
  if (!offset || !size) return std::nullopt;
  return BlockPlace{*offset, *size};
}

// The value of a name in a block of {shared 1.., own 1.., value 1.., own bytes, value} entries.
std::optional<BlockPlace> find_place(std::string_view block, std::string_view name) {
  std::string key;
  while (!block.empty()) {
    const std::optional<uint64_t> shared = take_number(block);
    const std::optional<uint64_t> own = take_number(block);
    const std::optional<uint64_t> value = take_number(block);
    if (!shared || !own || !value || *shared > key.size() || *own > block.size() ||
        *value > block.size() - *own) {
      return std::nullopt;
    }
    key.resize(*shared);
    key.append(block.substr(0, *own));
    block.remove_prefix(*own);
    std::string_view place = block.substr(0, *value);
    if (key == name) return take_place(place);
    block.remove_prefix(*value);
  }
  return std::nullopt;
}

IOStatus read(rocksdb::FSRandomAccessFile& file, BlockPlace place, std::string& bytes) {
  bytes.resize(place.size);
  rocksdb::Slice found;
  const IOStatus status = file.Read(place.offset, place.size, rocksdb::IOOptions(), &found,
                                    bytes.data(), nullptr);
  if (!status.ok()) return status;
  if (found.size() != place.size) return IOStatus::IOError("a read was short");
  bytes = found.ToString();
  return status;
}

}  // namespace

IOStatus check_table(rocksdb::FSRandomAccessFile& file, uint64_t size, const std::string& path) {
  if (size < kFooterBytes) return IOStatus::OK();
  const auto lies_within = [size](const std::optional<BlockPlace>& place) {
    return place && place->size >= sizeof(uint32_t) && place->size <= kMostBlockBytes &&
           place->offset < size && place->size <= size - place->offset;
  };
  std::string bytes;
  IOStatus status = read(file, {size - kFooterBytes, kFooterBytes}, bytes);
  if (!status.ok()) return status;
  std::string_view handles = std::string_view(bytes).substr(kHandlesOffset);
  const std::optional<BlockPlace> index = take_place(handles);
  if (!lies_within(index)) return IOStatus::OK();
  status = read(file, *index, bytes);
  if (!status.ok()) return status;
  // Its last numbers only lead into the middle; entries come first.
  const std::optional<BlockPlace> properties = find_place(bytes, kPropertiesName);
  if (!lies_within(properties)) return IOStatus::OK();
  status = read(file, *properties, bytes);
  if (!status.ok()) return status;
  const auto last = load_unaligned<uint32_t>(bytes.data() + bytes.size() - sizeof(uint32_t));
  if ((last & kHashIndexBit) == 0) return status;
  return IOStatus::Corruption(path, "its properties name an index that no table of ours has");
}

}  // namespace ember
