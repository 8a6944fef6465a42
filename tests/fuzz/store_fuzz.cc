// Fuzzes the sums of a slice in a store's file, without their compression: what can be read is
// checked, and what passes the check makes a profile or an error. There is no crash.
#include <unistd.h>
#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "store/packed_sums.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/sqlite_dictionary.h"
#include "store/store.h"
#include "tests/fuzz/merge_slice.h"

namespace {

namespace store = xenoscope::store;

// A store whose tables have two entries of each kind.
class Subject {
 public:
  Subject() {
    const std::string path =
        std::filesystem::temp_directory_path() / ("store_fuzz." + std::to_string(getpid()));
    std::filesystem::remove(path);
    auto made = store::OpenStore("sqlite:" + path, store::Access::kCreate);
    if (!made.ok() || !(*made)->Push(Slice(), dictionary_).ok()) std::abort();
    auto opened = store::Connection::Open(path, store::Access::kRead);
    if (!opened.ok()) std::abort();
    connection_ = std::make_unique<store::Connection>(*std::move(opened));
    std::filesystem::remove(path);  // it stays while it is open
  }

  const store::Connection& connection() const { return *connection_; }
  store::Slice Slice() {
    using xenoscope::correlate::ContextKind;
    store::Slice slice;
    slice.head = {.host = "a",
                  .begin_ns = 0,
                  .end_ns = 60'000'000'000,
                  .clock_hz = 2'000'000'000,
                  .event = "cycles"};
    for (const uint32_t i : {0, 1}) {
      const store::VcpuNumber vcpu = dictionary_.vcpus.Intern({"web", i});
      const store::ContextNumber context = dictionary_.contexts.Intern(
          {i == 0 ? ContextKind::kGuest : ContextKind::kExit, i == 0 ? "" : "CPUID", false});
      const store::CodeNumber code = dictionary_.codes.Intern(
          {xenoscope::Mode::kUser, "image", "function" + std::to_string(i)});
      slice.sums.strata.push_back({vcpu, context, 1000, 2, {3, 5, 2}});
      slice.sums.parts.push_back({vcpu, context, code, {3, 5, 5}, 0});
      slice.sums.trace.push_back({store::kWaitFigure, vcpu, "preempt", "", "db", 1, 500});
    }
    return slice;
  }

 private:
  store::Dictionary dictionary_;
  std::unique_ptr<store::Connection> connection_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Subject subject;
  std::string packed(ZSTD_compressBound(size), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), data, size, 1));
  store::Dictionary dictionary;
  auto keys = store::SqliteKeyReader::Make(subject.connection(), dictionary);
  if (!keys.ok()) std::abort();
  store::Slice slice = subject.Slice();
  if (!store::Unpacker().Read(xenoscope::AsBytes(packed), *keys, {}, slice.sums).ok()) return 0;
  if (store::CheckSlice(slice, dictionary).ok()) Merge(slice, dictionary);
  return 0;
}
