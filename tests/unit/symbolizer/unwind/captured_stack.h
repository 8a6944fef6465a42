// Registers and stack of the test itself, as a sample has them, and its code as a recording knows
// it.
#pragma once

#include <unistd.h>

#include <bit>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/user_registers.h"
#include "symbolizer/image_file.h"
#include "symbolizer/unwind/unwinder.h"

namespace xenoscope::symbolizer {

struct CapturedStack {
  UserRegisters registers{};
  std::vector<std::byte> bytes;  // from the stack pointer on

  [[nodiscard]] StackPiece piece() const { return {registers[kRsp], bytes}; }
};

// A line of /proc/self/maps with a file.
struct OwnMap {
  Address begin = 0;
  Address end = 0;
  uint64_t offset = 0;
  bool executable = false;
  std::string path;
};

inline std::vector<OwnMap> OwnMaps() {
  std::vector<OwnMap> maps;
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    OwnMap map;
    std::istringstream words(line);
    std::string modes;
    std::string ignored;
    char dash = 0;
    words >> std::hex >> map.begin >> dash >> map.end >> modes >> map.offset >> ignored >>
        ignored >> map.path;
    map.executable = modes.find('x') != std::string::npos;
    maps.push_back(map);
  }
  return maps;
}

// Keeps registers and stack as they are here, up to the end of the stack or `most` bytes.
// The stack holds what the address sanitizer forbids to read.
[[gnu::noinline, gnu::no_sanitize_address]] inline void Capture(CapturedStack& out,
                                                                size_t most = size_t{1} << 20) {
  UserRegisters& to = out.registers;
  asm volatile(
      "movq %%rbx, 24(%0)\n movq %%rbp, 48(%0)\n movq %%rsp, 56(%0)\n"
      "movq %%r12, 96(%0)\n movq %%r13, 104(%0)\n movq %%r14, 112(%0)\n movq %%r15, 120(%0)\n"
      "leaq (%%rip), %%rax\n movq %%rax, 128(%0)\n"
      :
      : "r"(to.data())
      : "rax", "memory");
  const Address begin = to[kRsp];
  Address end = begin;
  for (const OwnMap& map : OwnMaps()) {
    if (map.begin <= begin && begin < map.end) end = map.end;
  }
  const auto* const from = std::bit_cast<const volatile std::byte*>(begin);  // the stack itself
  out.bytes.resize(std::min<size_t>(most, end - begin));
  std::byte* const into = out.bytes.data();
  for (size_t i = 0; i < out.bytes.size(); ++i) into[i] = from[i];
}

// The code of this process.
class OwnCode final : public UnwindCodeSource {
 public:
  UnwindCode CodeAt(AddressSpaceId /*space*/, Address address) override {
    for (const OwnMap& map : maps_) {
      if (!map.executable || address < map.begin || address >= map.end) continue;
      if (map.path.empty() || map.path.front() != '/') return {.mapped = true};
      std::unique_ptr<ImageFile>& image = images_[map.path];
      if (image == nullptr) {
        image = *ImageFile::Open(*FileContent::Open(map.path), map.path, FileFinder());
      }
      const auto linked = image->AddressOf(address - map.begin + map.offset);
      return {true, image->unwind_table(), linked.value_or(0)};
    }
    return {};
  }

 private:
  std::vector<OwnMap> maps_ = OwnMaps();
  std::map<std::string, std::unique_ptr<ImageFile>> images_;
};

}  // namespace xenoscope::symbolizer
