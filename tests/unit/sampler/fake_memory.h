// Simulated memory of a guest: frames, and page tables that lead to them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>

#include "sampler/vcpu/guest_memory.h"

namespace xenoscope::sampler {

struct FakeRam {
  static constexpr uint64_t kRoot = 7;  // frame of the page tables' root
  static constexpr uint64_t kPresent = 1;
  static constexpr uint64_t kNoExecute = uint64_t{1} << 63;

  std::map<uint64_t, std::array<uint64_t, 512>> frames{{kRoot, {}}};
  uint64_t next_frame = 100;
  std::function<void()> on_map;
  uint64_t asked = 0;  // number of maps
  int64_t mapped = 0;  // frames mapped now

  // Returns the entry of the table for a page, at the level; makes the tables above it.
  uint64_t& Entry(uint64_t address, int level, int levels = 4) {
    uint64_t table = kRoot;
    for (int at = levels; at > level; --at) {
      uint64_t& entry = frames[table][address >> (12 + 9 * (at - 1)) & 511];
      if (entry == 0) entry = next_frame++ << 12 | kPresent;
      table = FrameOf(entry);
      frames[table];
    }
    return frames[table][address >> (12 + 9 * (level - 1)) & 511];
  }
  static uint64_t FrameOf(uint64_t entry) { return (entry & ~kNoExecute) >> 12; }
  // Writes a word of the guest's virtual memory, and makes its page one of data.
  void Write(uint64_t address, uint64_t word, int levels = 4) {
    uint64_t& entry = Entry(address, 1, levels);
    if (entry == 0) entry = next_frame++ << 12 | kPresent | kNoExecute;
    frames[FrameOf(entry)][address / 8 % 512] = word;
  }
  // Makes the page of the address one of code.
  void Code(uint64_t address, int levels = 4) {
    uint64_t& entry = Entry(address, 1, levels);
    if (entry == 0) entry = next_frame++ << 12 | kPresent;
    entry &= ~kNoExecute;
  }
  // Writes a function's frame on the stack: the caller's frame, and the return address.
  void Push(uint64_t at, uint64_t callers_frame, uint64_t caller, int levels = 4) {
    Write(at, callers_frame, levels);
    Write(at + 8, caller, levels);
    if (caller != 0) Code(caller, levels);
  }
};

class FakeMemory final : public GuestMemory {
 public:
  explicit FakeMemory(FakeRam& ram) : ram_(ram) {}
  const std::byte* Map(DomainId /*domain*/, uint64_t frame) override {
    ++ram_.asked;
    if (ram_.on_map) ram_.on_map();
    const auto found = ram_.frames.find(frame);
    if (found == ram_.frames.end()) return nullptr;
    ++ram_.mapped;
    return std::as_bytes(std::span(found->second)).data();
  }
  void Unmap(const std::byte* /*page*/) override { --ram_.mapped; }

 private:
  FakeRam& ram_;
};

}  // namespace xenoscope::sampler
