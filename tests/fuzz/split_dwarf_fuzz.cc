// Fuzzes debug information in two files that refer to each other. There is no crash, no hang and no
// endless memory. An input is the length of the first file (32 bits) and both files; the second one
// takes the place of any companion that the first one names: .dwo, .dwp or dwz's.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "symbolizer/dwarf/debug_info.h"
#include "symbolizer/file_content.h"
#include "symbolizer/file_finder.h"

namespace {

// A root with nothing else in it, which is removed when the program ends.
class Root {
 public:
  Root() {
    std::string pattern = (std::filesystem::temp_directory_path() / "divided.XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;
  ~Root() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  void Put(const char* name, xenoscope::Bytes content) const {
    std::FILE* file = std::fopen((path_ + "/" + name).c_str(), "wb");
    if (file == nullptr) std::abort();
    std::fwrite(content.data(), 1, content.size(), file);
    std::fclose(file);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace symbolizer = xenoscope::symbolizer;
  static const Root root;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto length = xenoscope::Load<uint32_t>(bytes, 0);
  if (!length || *length > size - sizeof(*length)) return 0;
  const auto program = bytes.subspan(sizeof(*length), *length);
  const auto companion = bytes.subspan(sizeof(*length) + *length);
  for (const char* name : {"a.dwo", "program.dwp", "shared"}) root.Put(name, companion);
  const auto debug_info = symbolizer::DebugInfo::Open(
      std::make_shared<symbolizer::FileContent>(
          symbolizer::FileContent::FromString(std::string(xenoscope::AsText(program)))),
      symbolizer::FileFinder(root.path()), {"/program"});
  if (!debug_info.ok()) return 0;
  constexpr xenoscope::Address kText = 0x400080;  // address of the corpus's code
  std::vector<xenoscope::Address> addresses = {0, 1, ~xenoscope::Address{0}};
  for (xenoscope::Address at = kText; at < kText + 256; at += 8) addresses.push_back(at);
  (*debug_info)->ReadUnitsOf(addresses);
  for (const xenoscope::Address address : addresses) {
    if ((*debug_info)->FramesAt(address).size() > 256) std::abort();
  }
  if ((*debug_info)->Companions().size() > 2) std::abort();
  if ((*debug_info)->MemoryUsed() > (size + (size_t{1} << 20)) * 1024) std::abort();
  return 0;
}
