#include "base/mapped_ranges.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <mutex>
#include <set>

namespace xenoscope {
namespace {

// Ranges in blocks that are linked, so that the handler can go through them without a lock.
struct Block {
  static constexpr size_t kRanges = 64;
  MappedRange ranges[kRanges];
  std::atomic<Block*> next = nullptr;
};

// The state that the handler reads. Constant-initialized, never destroyed.
Block first_block;
std::atomic<uintptr_t> page_size = 0;
struct sigaction handler_before {};

struct Mappings {
  std::mutex mutex;
  std::set<std::string> cut;  // guarded by mutex: files whose mappings are gone
};
Mappings& All() {
  static auto& all = *new Mappings;  // files may be unmapped while the process ends
  return all;
}

template <typename Visit>
void ForEachRange(Visit visit) {
  for (Block* block = &first_block; block != nullptr; block = block->next.load()) {
    for (MappedRange& range : block->ranges) {
      if (visit(range)) return;
    }
  }
}

// Async-signal-safe. The bytes that follow in the file lie behind its end, too.
bool PutZeros(uintptr_t address) {
  bool done = false;
  ForEachRange([&](MappedRange& range) {
    const uintptr_t begin = range.begin.load();
    const uintptr_t end = range.end.load();
    // Where it was given to another mapping between the two, both may be of different ones.
    if (begin == 0 || address < begin || address >= end || range.begin.load() != begin) {
      return false;
    }
    range.is_truncated.store(true);
    const uintptr_t page = address / page_size.load() * page_size.load();
    // NOLINTNEXTLINE(performance-no-int-to-ptr): what the system gave as a number
    void* const from = reinterpret_cast<void*>(page);
    done = mmap(from, end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
           MAP_FAILED;
    return true;
  });
  return done;
}

void OnBusError(int signal, siginfo_t* info, void* /*context*/) {
  const bool is_fault = info->si_code > 0;  // else a process sent the signal
  if (is_fault && PutZeros(reinterpret_cast<uintptr_t>(info->si_addr))) return;
  sigaction(signal, &handler_before, nullptr);
  if (!is_fault) (void)raise(signal);  // a fault occurs again by itself
}

void InstallHandler() {
  page_size.store(static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)));
  struct sigaction action {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, &handler_before);
}

// Returns a range that is not in use. The mutex is held.
MappedRange& FreeRange() {
  MappedRange* found = nullptr;
  Block* last = nullptr;
  for (Block* block = &first_block; found == nullptr && block != nullptr;
       block = block->next.load()) {
    last = block;
    for (MappedRange& range : block->ranges) {
      if (range.begin.load() == 0) found = &range;
    }
  }
  if (found != nullptr) return *found;
  auto* const block = new Block;
  last->next.store(block);
  return block->ranges[0];
}

bool IsTruncated(const MappedRange& range) {
  if (range.is_truncated.load()) return true;
  // The kernel gives zeros for the rest of the last page, without a fault. A file that has been
  // renamed or deleted is not found, and one with another number is another one.
  struct stat info {};
  return stat(range.path.c_str(), &info) == 0 && info.st_dev == range.device &&
         info.st_ino == range.inode &&
         static_cast<uintptr_t>(info.st_size) < range.end.load() - range.begin.load();
}

}  // namespace

MappedRange* RegisterMapping(Bytes bytes, const std::string& path, uint64_t device,
                             uint64_t inode) {
  Mappings& all = All();
  const std::lock_guard lock(all.mutex);
  if (page_size.load() == 0) InstallHandler();
  MappedRange& range = FreeRange();
  range.path = path;
  range.device = device;
  range.inode = inode;
  range.is_truncated.store(false);
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  range.end.store(begin + bytes.size());
  range.begin.store(begin);
  return &range;
}

void UnregisterMapping(MappedRange* range) {
  Mappings& all = All();
  const std::lock_guard lock(all.mutex);
  if (IsTruncated(*range)) all.cut.insert(range->path);
  range->begin.store(0);
}

std::vector<std::string> TruncatedMappings() {
  Mappings& all = All();
  const std::lock_guard lock(all.mutex);
  std::set<std::string> cut = all.cut;
  ForEachRange([&cut](const MappedRange& range) {
    if (range.begin.load() != 0 && IsTruncated(range)) cut.insert(range.path);
    return false;
  });
  return {cut.begin(), cut.end()};
}

}  // namespace xenoscope
