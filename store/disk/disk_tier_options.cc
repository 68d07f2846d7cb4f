// Disk tier options: RocksDB set as a log of epochs, scaled to the limits on disk and RAM.
#include <rocksdb/filter_policy.h>
#include <rocksdb/sst_partitioner.h>
#include <rocksdb/table.h>

#include <algorithm>

#include "store/disk/disk_tier_impl.h"

namespace ember {
namespace {

constexpr uint64_t kMiB = 1u << 20;

// Of a row of `meta` some hundred bytes: more of them in a block mean fewer blocks to walk through
// and an index that stays in a small cache. Not more: a damaged block hides all that is in it.
constexpr uint64_t kMetaBlockBytes = 8u << 10;

rocksdb::ColumnFamilyOptions plain_family(const std::shared_ptr<rocksdb::Cache>& cache,
                                          uint64_t block_bytes) {
  rocksdb::ColumnFamilyOptions family;
  family.compression = rocksdb::kNoCompression;
  family.bottommost_compression = rocksdb::kDisableCompressionOption;
  family.max_write_buffer_number = 2;
  family.max_bytes_for_level_base = 8 * kMiB;
  // Tables here are small; a stall would come from their number alone.
  family.level0_slowdown_writes_trigger = 64;
  family.level0_stop_writes_trigger = 128;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.block_size = block_bytes;
  table.cache_index_and_filter_blocks = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return family;
}

}  // namespace

DiskFamilies disk_families(const DiskTierOptions& options) {
  auto cache = rocksdb::NewLRUCache(std::max<uint64_t>(options.block_cache_bytes, 256u << 10), 2);
  uint64_t memtables = std::max<uint64_t>(options.memtable_bytes, kMiB);
  DiskFamilies families{plain_family(cache, kMetaBlockBytes), plain_family(cache, 4u << 10)};

  rocksdb::ColumnFamilyOptions& meta = families.meta;
  meta.write_buffer_size = std::clamp<uint64_t>(memtables / 16, 64u << 10, 16 * kMiB);
  meta.target_file_size_base = std::clamp<uint64_t>(options.limit_bytes / 64, 256u << 10, 8 * kMiB);
  // Each flush brings a few rows for hashes all over. Merged into one sorted level, every few of
  // them would write all metadata again; so runs of like size are merged with each other instead.
  meta.compaction_style = rocksdb::kCompactionStyleUniversal;
  meta.compaction_options_universal.max_size_amplification_percent = 100;
  meta.level0_file_num_compaction_trigger = 8;

  rocksdb::ColumnFamilyOptions& data = families.data;
  // Two of each: one fills while the other is flushed.
  data.write_buffer_size = memtables / 2 - meta.write_buffer_size;
  data.enable_blob_files = true;
  data.min_blob_size = 1;  // all but the empty row beside dropped ranges
  data.blob_file_size = uint64_t{4} << 30;  // never reached: one blob file a flush
  data.blob_compression_type = rocksdb::kNoCompression;
  data.enable_blob_garbage_collection = false;  // whole epochs are retired instead
  data.target_file_size_base = 256u << 10;
  data.level0_file_num_compaction_trigger = 2;
  // Entries of different epochs never share a table, so that retiring one touches no other.
  data.sst_partitioner_factory = rocksdb::NewSstPartitionerFixedPrefixFactory(sizeof(uint32_t));
  return families;
}

void DiskTierImpl::hold_compaction(DiskFamilies& families) {
  families.meta.disable_auto_compactions = families.data.disable_auto_compactions = true;
  compaction_waits_ = true;
}

void DiskTierImpl::opening_ended() {
  std::shared_lock hold(db_mutex_);
  if (db_ != nullptr) let_compact();
}

// A failure is tried again with a later write: nothing is lost by waiting.
void DiskTierImpl::let_compact() {
  if (!compaction_waits_.exchange(false)) return;
  if (!db_->EnableAutoCompaction({meta_, data_}).ok()) compaction_waits_ = true;
}

}  // namespace ember
