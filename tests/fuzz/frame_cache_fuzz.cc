// Fuzzes files of the cache of frames, with and without a correct checksum. There is no crash; a
// damaged cache costs only time: frames are few, and the file that is written next can be read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/crc.h"
#include "fuzz_recording.h"
#include "symbolizer/dwarf/debug_info.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/file_content.h"
#include "symbolizer/file_finder.h"
#include "symbolizer/frame_table.h"
#include "symbolizer/index_cache.h"

namespace {

namespace symbolizer = xenoscope::symbolizer;

constexpr xenoscope::Address kText = 0x400080;  // address of the corpus's code

// The frames of the subject's code, through a cache or without one.
class Subject {
 public:
  explicit Subject(const std::shared_ptr<const symbolizer::IndexCache>& cache) {
    auto file = symbolizer::FileContent::Open(path_);
    if (!file.ok()) std::abort();
    content_ = std::make_shared<symbolizer::FileContent>(*std::move(file));
    auto opened = symbolizer::DebugInfo::Open(content_, symbolizer::FileFinder("/no/such/root"),
                                              {path_}, cache);
    if (opened.ok()) debug_info_ = *std::move(opened);
  }
  void Store(const symbolizer::IndexCache& cache, const std::string& bytes) const {
    const auto elf = symbolizer::ElfFile::Open(content_->bytes());
    if (!elf.ok()) std::abort();
    cache.Store(elf->BuildId(), content_->identity(), bytes);
  }
  void ReadFrames() const {
    if (debug_info_ == nullptr) return;
    std::vector<xenoscope::Address> addresses = {0, 1, ~xenoscope::Address{0}};
    for (xenoscope::Address at = kText; at < kText + 256; at += 8) addresses.push_back(at);
    debug_info_->ReadUnitsOf(addresses);
    for (const xenoscope::Address address : addresses) {
      const auto frames = debug_info_->FramesAt(address);
      if (frames.size() > symbolizer::kMaxFrames) std::abort();
      size_t length = 0;
      for (const auto& frame : frames) length += frame.function.size() + frame.file.size();
      if (length > (size_t{1} << 24)) std::abort();
    }
  }

 private:
  std::string path_ = XENOSCOPE_FUZZ_CORPUS "/debug_info/clang-dwarf5";
  std::shared_ptr<const symbolizer::FileContent> content_;
  std::unique_ptr<symbolizer::DebugInfo> debug_info_;
};

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const xenoscope::fuzz::WorkDirectory directory;
  static const auto cache =
      std::make_shared<const symbolizer::IndexCache>(directory.path() + "/cache");
  static const Subject subject(nullptr);
  constexpr size_t kCrcAt = 12;  // offset of the CRC, which is of all that follows it
  std::string bytes(xenoscope::AsText(std::as_bytes(std::span(data, size))));
  if (size > kCrcAt + 4) {
    const uint32_t crc = xenoscope::Crc32(std::as_bytes(std::span(bytes)).subspan(kCrcAt + 4));
    std::memcpy(&bytes[kCrcAt], &crc, sizeof crc);
  }
  subject.Store(*cache, bytes);
  // The second run reads what the first one leaves there.
  Subject(cache).ReadFrames();
  Subject(cache).ReadFrames();
  directory.Clear();
  return 0;
}
