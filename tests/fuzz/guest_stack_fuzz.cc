// Fuzzes a guest's registers, page tables, stacks, and the headers of programs in its memory. There
// is no crash and no hang, and the work is bounded. Bytes 0..31 are instruction, stack and frame
// pointer and the root of the page tables; the rest is memory in frames of 128 bytes, each repeated
// over 4096 bytes; every frame number means one of them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/mode.h"
#include "sampler/vcpu/guest_programs.h"
#include "sampler/vcpu/guest_stack.h"

namespace {

using xenoscope::Address;
using xenoscope::Bytes;
namespace sampler = xenoscope::sampler;

constexpr size_t kBlockSize = 128;
constexpr size_t kMaxFrames = 64;

class FakeMemory final : public sampler::GuestMemory {
 public:
  FakeMemory(Bytes bytes, int64_t& mapped) : mapped_(mapped) {
    for (size_t at = 0; at < bytes.size() && frames_.size() < kMaxFrames; at += kBlockSize) {
      std::vector<std::byte> frame;
      const Bytes block = bytes.subspan(at, std::min(kBlockSize, bytes.size() - at));
      while (frame.size() < sampler::kFrameSize) {
        frame.insert(frame.end(), block.begin(), block.end());
      }
      frame.resize(sampler::kFrameSize);
      frames_.push_back(std::move(frame));
    }
  }
  const std::byte* Map(xenoscope::DomainId /*domain*/, uint64_t frame) override {
    if (frames_.empty() || frame % (frames_.size() + 1) == frames_.size()) return nullptr;
    ++mapped_;
    return frames_[frame % (frames_.size() + 1)].data();
  }
  void Unmap(const std::byte* /*page*/) override { --mapped_; }

 private:
  std::vector<std::vector<std::byte>> frames_;
  int64_t& mapped_;
};

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes bytes = std::as_bytes(std::span(data, size));
  constexpr size_t kRegisters = 32;
  if (bytes.size() < kRegisters) return 0;
  sampler::VcpuContext context;
  context.address = xenoscope::LoadUnchecked<Address>(bytes.data());
  context.stack = xenoscope::LoadUnchecked<Address>(bytes.data() + 8);
  context.frame = xenoscope::LoadUnchecked<Address>(bytes.data() + 16);
  context.page_tables = xenoscope::LoadUnchecked<uint64_t>(bytes.data() + 24);
  int64_t mapped = 0;
  for (const int variant : {0, 1, 2, 3}) {
    context.five_levels = (variant & 1) != 0;
    context.mode = (variant & 2) != 0 ? xenoscope::Mode::kKernel : xenoscope::Mode::kUser;
    sampler::MappedFrames frames(std::make_unique<FakeMemory>(bytes.subspan(kRegisters), mapped));
    sampler::StackPieces stacks;
    sampler::GuestStack stack(frames);
    stack.Read(xenoscope::DomainId{1}, context, stacks);
    stack.ReadOuter(stacks);
    if (stacks.pieces.size() > sampler::GuestStack::kMaxPieces) std::abort();
    if (frames.maps() > sampler::GuestStack::kMaxMaps) std::abort();
    std::vector<Address> callers;
    stack.Unwind(xenoscope::DomainId{1}, context, stacks, callers);
    if (callers.size() > sampler::GuestStack::kMaxCallers) std::abort();
    if (frames.maps() > 2 * sampler::GuestStack::kMaxMaps) std::abort();
    size_t words = 0;
    for (const auto& piece : stacks.pieces) words += stacks.WordsOf(piece).size();
    if (words != stacks.words.size()) std::abort();
    const uint64_t maps_before = frames.maps();
    sampler::GuestPrograms programs(frames);
    xenoscope::recording::ProcessChunk found;
    programs.Find(xenoscope::DomainId{1}, context, stacks.words, xenoscope::Tsc{1},
                  /*search=*/true, found);
    if (frames.maps() - maps_before > sampler::GuestPrograms::kMaxMaps) std::abort();
  }
  if (mapped != 0) std::abort();
  return 0;
}
