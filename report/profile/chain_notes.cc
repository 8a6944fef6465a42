#include "report/profile/chain_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "base/ids.h"

namespace xenoscope::report {
namespace {

using recording::DomainInfo;
using recording::DomainType;
using recording::StreamInfo;

constexpr uint64_t kMinSamples = 50;  // fewer samples may all be in outermost functions
// Callers for each sample. With frame pointers there are more; without, a register that holds
// something else leads to one now and then.
constexpr double kMinCallers = 0.1;
constexpr size_t kMaxNamedDomains = 3;  // domains of a note; of more the number is given
constexpr size_t kMaxNamedModules = 3;  // modules of a note; of others the number is given

// Reasons why chains end early, each with its number.
class Ends {
 public:
  explicit Ends(const profile::UnwindCounts& counts) : counts_(counts) {}
  void Add(ChainEnd end, const std::string& why) {
    if (const uint64_t count = counts_.of(end); count > 0) {
      parts_.push_back(fmt::format("{} {}", count, why));
    }
  }
  // Returns "; 3 ...; 4 ...", or "".
  [[nodiscard]] std::string Text() const {
    return parts_.empty() ? "" : fmt::format("; {}", fmt::join(parts_, "; "));
  }

 private:
  const profile::UnwindCounts& counts_;
  std::vector<std::string> parts_;
};

std::string UserNote(const recording::RecordingInfo& info, const profile::UnwindCounts& counts) {
  uint32_t piece = 0;
  for (const recording::SourceInfo& source : info.sources) {
    if (source.stacks && source.name != "vcpu") piece = std::max(piece, source.stacks->piece_bytes);
  }
  Ends ends(counts);
  ends.Add(ChainEnd::kStackCut,
           fmt::format("end where the recorded piece of the stack ends ({} bytes; record with "
                       "--call-graph dwarf,BYTES for a larger one)",
                       piece));
  ends.Add(ChainEnd::kNoTable,
           "end at code that has neither a table for unwinding nor frame pointers, or whose file "
           "is not here (--origins names what is missing)");
  ends.Add(ChainEnd::kBadRule,
           "end because the table, the registers or the stack are not valid there");
  ends.Add(ChainEnd::kTooDeep, "are longer than the limit");
  ends.Add(
      ChainEnd::kNoStack,
      "have no stack: of 32-bit programs, or left out because too many bytes came, or damaged");
  std::string note =
      fmt::format("{} of {} call chains in user mode were unwound up to the outermost function{}.",
                  counts.of(ChainEnd::kOutermost), counts.Chains(), ends.Text());
  if (counts.by_frame_pointer > 0) {
    note += fmt::format(
        " {} of {} callers were found by frame pointers, where code has no table; others may be "
        "missing beside them.",
        counts.by_frame_pointer, counts.callers);
  }
  return note;
}

// Returns why samples of the source vcpu have no stack.
std::string WhyNoStack(const recording::RecordingInfo& info) {
  uint64_t left_out = 0;
  for (const recording::SourceInfo& source : info.sources) {
    if (source.stacks && source.name == "vcpu") left_out += source.stacks->left_out;
  }
  return fmt::format("have no stack, because the vCPU had run on when it was to be read{}",
                     left_out == 0 ? "" : ", or because too many bytes came");
}

std::string GuestProgramsNote(const recording::RecordingInfo& info,
                              const profile::UnwindCounts& counts) {
  Ends ends(counts);
  ends.Add(ChainEnd::kStackCut, "end where the stack that was read ends");
  ends.Add(ChainEnd::kNoTable,
           "end at code of no file that was given (--guest DOMAIN:exe=FILE; --by process shows the "
           "build-ids), of several, or without a table for unwinding");
  ends.Add(ChainEnd::kBadRule,
           "end because the stack had changed since the vCPU was stopped, or another program ran "
           "at these addresses");
  ends.Add(ChainEnd::kTooDeep, "are longer than the limit");
  ends.Add(ChainEnd::kNoStack, WhyNoStack(info));
  return fmt::format(
      "{} of {} call chains in guests' programs that the source vcpu sampled were unwound up to "
      "the "
      "outermost function{}.",
      counts.of(ChainEnd::kOutermost), counts.Chains(), ends.Text());
}

// Returns which code of a kernel has no ORC.
std::string WithoutOrc(const std::string& domain, const std::vector<std::string>& modules) {
  std::string why = "end at code without ORC: that of ";
  if (modules.empty()) return why + "unknown modules, BPF, or assembly";
  const size_t named = std::min(modules.size(), kMaxNamedModules);
  why += fmt::format("modules ({}", fmt::join(std::span(modules).first(named), "; "));
  if (modules.size() > named) why += fmt::format("; and {} more", modules.size() - named);
  return why + fmt::format(
                   "), BPF, or assembly; --guest {0}:root=DIR or {0}:module=FILE.ko gives "
                   "modules",
                   domain);
}

std::string KernelNote(const recording::RecordingInfo& info, const std::string& domain,
                       const profile::KernelUnwindCounts& kernel) {
  if (!kernel.why_no_orc.empty()) {
    return fmt::format(
        "{} call chains in the kernel of {} follow frame pointers, because {}. If the kernel was "
        "built without frame pointers, they are empty or wrong; a vmlinux with ORC makes them "
        "whole "
        "(--guest {}:kernel=VMLINUX).",
        kernel.by_frame_pointers, domain, kernel.why_no_orc, domain);
  }
  Ends ends(kernel.by_orc);
  ends.Add(ChainEnd::kStackCut, "end where the stack that was read ends");
  ends.Add(ChainEnd::kNoTable, WithoutOrc(domain, kernel.modules_without_orc));
  ends.Add(ChainEnd::kBadRule,
           "end because the stack had changed since the vCPU was stopped, or the ORC is of another "
           "kernel");
  ends.Add(ChainEnd::kTooDeep, "are longer than the limit");
  ends.Add(ChainEnd::kNoStack, WhyNoStack(info));
  return fmt::format(
      "{} of {} call chains in the kernel of {} were unwound by its ORC up to where the kernel was "
      "entered{}.",
      kernel.by_orc.of(ChainEnd::kOutermost), kernel.by_orc.Chains(), domain, ends.Text());
}

constexpr std::string_view kNoFramePointers =
    "Xen follows frame pointers, and the sampled code keeps none";
constexpr std::string_view kNoPvDomain =
    "xenoprof follows call chains in PV domains only, not in PVH and HVM guests";

// Domains whose samples have no callers, or hardly any, for one reason.
struct WithoutCallers {
  std::vector<std::string> names;
  uint64_t samples = 0;
  uint64_t callers = 0;

  // Says so; `where` the callers are that there are.
  [[nodiscard]] std::string Note(std::string_view where, std::string_view why) const {
    return fmt::format(
        "{} samples of {} have {}: {}. Record with --source vcpu -g or with an agent (--active).",
        samples,
        names.size() > kMaxNamedDomains ? fmt::format("{} domains", names.size())
                                        : fmt::format("{}", fmt::join(names, ", ")),
        callers == 0 ? "no callers" : fmt::format("only {} callers{}", callers, where), why);
  }
};

struct Chains {
  uint64_t samples = 0;
  uint64_t begun = 0;
  uint64_t callers = 0;
};

// The records that sources with stacks have lost, of whatever kind.
uint64_t LostWithStacks(const recording::RecordingInfo& info) {
  uint64_t lost = 0;
  for (const recording::SourceInfo& source : info.sources) {
    if (!source.stacks) continue;
    for (const StreamInfo& stream : info.streams) {
      if (stream.source == source.name) lost += stream.logged.lost;
    }
  }
  return lost;
}

}  // namespace

std::vector<std::string> ChainNotes(const recording::RecordingInfo& info) {
  std::map<DomainId, Chains> domains;
  for (const StreamInfo& stream : info.streams) {
    if (stream.source != "xenoprof") continue;
    Chains& chains = domains[stream.vcpu.domain];
    chains.samples += stream.kept;
    chains.begun += stream.escapes;
    chains.callers += stream.callers;
  }
  std::array<WithoutCallers, 2> by_type;  // index: whether the domain is PVH or HVM
  for (const auto& [id, chains] : domains) {
    const DomainInfo* const domain = info.Domain(id);
    const bool is_hvm =
        domain != nullptr && (domain->type == DomainType::kPvh || domain->type == DomainType::kHvm);
    // The callers of PVH and HVM guests are Xen's own, where Xen has frame pointers.
    const bool has_callers = !is_hvm && static_cast<double>(chains.callers) >=
                                            kMinCallers * static_cast<double>(chains.samples);
    if (chains.begun == 0 || has_callers || chains.samples < kMinSamples) continue;
    WithoutCallers& without = by_type.at(size_t{is_hvm});
    without.names.push_back(DomainLabel(id, info.NameOf(id)));
    without.samples += chains.samples;
    without.callers += chains.callers;
  }
  std::vector<std::string> notes;
  if (!by_type[0].names.empty()) notes.push_back(by_type[0].Note("", kNoFramePointers));
  if (!by_type[1].names.empty()) notes.push_back(by_type[1].Note(" in Xen", kNoPvDomain));
  return notes;
}

std::vector<std::string> UnwindNotes(const recording::RecordingInfo& info,
                                     const profile::UnwindResults& results) {
  std::vector<std::string> notes;
  const profile::UnwindCounts& user = results.user;
  if (user.Chains() > 0) notes.push_back(UserNote(info, user));
  if (results.guest_programs.Chains() > 0) {
    notes.push_back(GuestProgramsNote(info, results.guest_programs));
  }
  const uint64_t lost = LostWithStacks(info);
  if (lost > 0 && user.of(ChainEnd::kNoTable) + user.of(ChainEnd::kBadRule) > 0) {
    notes.push_back(fmt::format(
        "{} records of sources with stacks were lost because buffers were full. Where one was of a "
        "file that a process maps, chains end at the code of this file. Record with fewer samples "
        "a second.",
        lost));
  }
  for (const auto& [id, kernel] : results.kernels) {
    const std::string name = info.NameOf(id);
    notes.push_back(KernelNote(info, name.empty() ? ToString(id) : name, kernel));
  }
  return notes;
}

}  // namespace xenoscope::report
