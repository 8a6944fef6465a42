#include "report/export/trace_dat_kernel.h"

#include <algorithm>

#include "base/error.h"
#include "report/export/trace_dat.h"

namespace xenoscope::report {

uint64_t TraceDatId(DomainId domain) {
  constexpr uint64_t kDomains = 0x78656e00'00000001;  // any number but 0, which is none
  return kDomains + domain.value;
}

absl::StatusOr<uint64_t> WriteKernelTraceDat(const std::string& path,
                                             const guests::KernelTrace& trace,
                                             const guests::EventClock& clock,
                                             const guests::ThreadStates& threads,
                                             std::string_view kallsyms,
                                             const TraceDatOptions& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(TraceDat file, TraceDat::Create(trace.cpus()));
  for (size_t cpu = 0; cpu < trace.cpus(); ++cpu) {
    guests::CpuCursor cursor(trace, cpu, clock);
    while (cursor.NextOfAll()) {
      if (cursor.after_loss()) XENOSCOPE_RETURN_IF_ERROR(file.Lose(cpu));
      const Tsc at = std::max(cursor.at(), options.zero);
      XENOSCOPE_RETURN_IF_ERROR(
          file.Add(cpu, options.clock.Nanoseconds(at - options.zero), cursor.data()));
    }
  }
  TraceDatHead head{.id = TraceDatId(trace.domain()),
                    .formats = {},
                    .kallsyms = kallsyms,
                    .threads = {},
                    .guests = {}};
  for (const guests::EventFormat& format : trace.formats().events) {
    head.formats.push_back({format.system, format.text});
  }
  for (const guests::GuestThread& thread : threads.threads()) {
    // A line each: a name has no end of line in it.
    std::string name = thread.name;
    std::ranges::replace(name, '\n', ' ');
    if (thread.tid != 0 && !name.empty()) head.threads[thread.tid] = std::move(name);
  }
  XENOSCOPE_RETURN_IF_ERROR(file.Write(path, head));
  return file.left_out();
}

}  // namespace xenoscope::report
