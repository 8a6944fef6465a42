#include "cli/shared_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "store/slice_bytes.h"
#include "store/store.h"

namespace xenoscope::cli {
namespace {

// Makes the directory of the file, for its owner alone. The store says where that fails.
void MakeDirectoryOf(const std::string& file) {
  constexpr mode_t kOwnerOnly = 0700;
  const std::filesystem::path directory = std::filesystem::path(file).parent_path();
  if (directory.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(directory.parent_path(), ignored);
  (void)mkdir(directory.c_str(), kOwnerOnly);
}

uint64_t SizeOf(const std::string& file) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(file, error);
  return error ? 0 : size;
}

// Removes the oldest slices until the store is within its limits, but for the newest one.
absl::Status Prune(const std::string& file, const SharedLimits& limits, store::Store& store) {
  while (true) {
    XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<store::SliceHead> heads, store.Heads({}));
    uint64_t excess = heads.size() > limits.slices ? heads.size() - limits.slices : 0;
    // To give space back takes as long as the file is: a part of it at once.
    constexpr uint64_t kPart = 4;
    if (SizeOf(file) > limits.bytes) excess = std::max(excess, heads.size() / kPart + 1);
    if (excess == 0 || heads.size() < 2) return absl::OkStatus();
    const store::SliceHead& oldest_kept = heads[std::min(excess, heads.size() - 1)];
    store::Selection old;
    old.until_ns = oldest_kept.begin_ns;
    XENOSCOPE_ASSIGN_OR_RETURN(const uint64_t removed, store.Remove(old));
    if (removed == 0) return absl::OkStatus();  // several began at one time
  }
}

}  // namespace

absl::Status KeepShared(const std::string& file, Bytes bytes, const SharedLimits& limits) {
  XENOSCOPE_ASSIGN_OR_RETURN(const store::KeyedSlice slice, store::FromBytes(bytes));
  MakeDirectoryOf(file);
  XENOSCOPE_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store,
                             store::OpenStore("sqlite:" + file, store::Access::kCreate));
  XENOSCOPE_RETURN_IF_ERROR(store->Push(slice.slice, slice.dictionary).status());
  return Prune(file, limits, *store);
}

}  // namespace xenoscope::cli
