#include "analysis/eip_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "base/mode.h"

namespace xenoscope::analysis {
namespace {

constexpr size_t kListed = 64;
constexpr uint32_t kNoVectorTag = 0x100;

// The guest's mode is not recorded. Kernels of 64 bits live in the upper half; that of a guest of
// 32 bits is taken for user mode, which the resolver then says.
Mode ModeOf(Address address) { return address >> 63 != 0 ? Mode::kKernel : Mode::kUser; }

}  // namespace

void EipList::Prepend(EipList& earlier, Room& room) {
  counts_.Prepend(
      earlier.counts_, kMost, room, [](uint64_t& count, uint64_t more) { count += more; },
      [](const TableKey& /*key*/) { return kOthers; });
}

void EipLists::Prepend(EipLists& earlier, Room& room) {
  emulated_.Prepend(earlier.emulated_, room);
  interrupted_.Prepend(earlier.interrupted_, room);
}

void EipLists::Add(const ExitContents& exit, Room& room) {
  if (exit.emulated) emulated_.Add(exit.rip, static_cast<uint32_t>(exit.kind), room);
  if (exit.kind == ExitKind::kInterrupt) {
    const auto vector =
        exit.number == kNoVector ? kNoVectorTag : static_cast<uint32_t>(exit.number & 0xff);
    interrupted_.Add(exit.rip, vector, room);
  }
}

void EipList::Describe(DomainId domain, const Facts& facts,
                       absl::FunctionRef<std::string(uint32_t tag)> name, Group& group) const {
  std::vector<std::pair<TableKey, uint64_t>> sorted;
  uint64_t others = 0;
  counts_.ForEach([&](const TableKey& key, uint64_t count) {
    if (key == kOthers) {
      others = count;
    } else {
      sorted.emplace_back(key, count);
    }
  });
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::tie(b.second, a.first.number, a.first.tag) <
           std::tie(a.second, b.first.number, b.first.tag);
  });
  for (size_t i = 0; i < sorted.size(); ++i) {
    const auto& [key, count] = sorted[i];
    if (i >= kListed) {
      others += count;
      continue;
    }
    Row row{fmt::format("0x{:x}, {}", key.number, name(key.tag)), {}, {}};
    row.Add("count", Unit::kCount, count);
    if (facts.resolver != nullptr) {
      const Function& function =
          facts.resolver->Describe(facts.resolver->Resolve(domain, ModeOf(key.number), key.number));
      row.Add("symbol", function.name).Add("image", function.image);
    }
    group.rows.push_back(std::move(row));
  }
  if (others == 0) return;
  group.rows.push_back(Row{"(others)", {}, {}}.Add("count", Unit::kCount, others));
}

void EipLists::Describe(DomainId domain, const Facts& facts, Section& out) const {
  emulated_.Describe(
      domain, facts, [](uint32_t tag) { return std::string(ToString(static_cast<ExitKind>(tag))); },
      out.AddGroup("emulate_eip", "Emulated instructions, by address", Show::kLongList));
  interrupted_.Describe(
      domain, facts,
      [](uint32_t tag) {
        return NumberName(ExitKind::kInterrupt, tag == kNoVectorTag ? kNoVector : tag);
      },
      out.AddGroup("interrupt_eip", "Interrupted by the host's interrupts, by address",
                   Show::kLongList));
}

}  // namespace xenoscope::analysis
