// All series of `xenoscope timeline`. To add one, declare its maker here and add a row to
// kAllSeries.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "analysis/series/series.h"

namespace xenoscope::analysis {

std::unique_ptr<Series> MakeDomainRunTime(DomainFilter filter);
std::unique_ptr<Series> MakePcpuUtilisation(DomainFilter filter);
std::unique_ptr<Series> MakeRunstateTimes(DomainFilter filter);
std::unique_ptr<Series> MakeDomainShortSummary(DomainFilter filter);
std::unique_ptr<Series> MakeCr3Time(DomainFilter filter);
std::unique_ptr<Series> MakeCr3ShortSummary(DomainFilter filter);
std::unique_ptr<Series> MakeExitCounts(DomainFilter filter);
std::unique_ptr<Series> MakeExitTimes(DomainFilter filter);
std::unique_ptr<Series> MakeGuestInterrupts(DomainFilter filter);
std::unique_ptr<Series> MakeHypercalls(DomainFilter filter);
std::unique_ptr<Series> MakeGrantMaps(DomainFilter filter);
std::unique_ptr<Series> MakeLostRecords(DomainFilter filter);

inline constexpr std::array kAllSeries = {
    SeriesInfo{"domain-run-time", "Run time of domains",
               "time that each domain's vCPUs ran, the idle domain's too", Quantity::kTime, true,
               MakeDomainRunTime},
    SeriesInfo{"pcpu-utilisation", "Utilisation of pCPUs",
               "time that each pCPU ran something other than the idle domain", Quantity::kTime,
               false, MakePcpuUtilisation},
    SeriesInfo{"runstates", "Runstates of vCPUs",
               "time of each vCPU running, runnable, blocked, offline, lost", Quantity::kTime, true,
               MakeRunstateTimes},
    SeriesInfo{"domain-short-summary", "Short summary of domains",
               "run time, and time in exits by class (vmcall, intr, hlt, ...), of HVM domains",
               Quantity::kTime, false, MakeDomainShortSummary},
    SeriesInfo{"cr3-time", "Run time of address spaces",
               "run time of each cr3 of HVM domains; needs traced cr3 writes (shadow paging)",
               Quantity::kTime, true, MakeCr3Time},
    SeriesInfo{"cr3-short-summary", "Short summary of address spaces",
               "as domain-short-summary, of each cr3", Quantity::kTime, false, MakeCr3ShortSummary},
    SeriesInfo{"exits", "VM exits by reason", "VM exits by reason, in the interval where they end",
               Quantity::kCount, true, MakeExitCounts},
    SeriesInfo{"exit-time", "Time of VM exits by reason",
               "time between VM exit and entry by reason; a halt's blocked time is in it",
               Quantity::kTime, true, MakeExitTimes},
    SeriesInfo{"guest-interrupts", "Interrupts injected into guests",
               "virtual interrupts that Xen injected, by domain and vector", Quantity::kCount, true,
               MakeGuestInterrupts},
    SeriesInfo{"hypercalls", "Hypercalls", "hypercalls by name, those inside multicalls too",
               Quantity::kCount, true, MakeHypercalls},
    SeriesInfo{"grant-maps", "Grant operations",
               "pages granted: mapped, unmapped, transferred, by the domain that the record names",
               Quantity::kCount, true, MakeGrantMaps},
    SeriesInfo{"lost-records", "Lost records", "records lost in Xen's buffers, by pCPU",
               Quantity::kCount, true, MakeLostRecords},
};

// Returns the series of this name, or null.
inline const SeriesInfo* FindSeries(std::string_view name) {
  for (const SeriesInfo& info : kAllSeries) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

}  // namespace xenoscope::analysis
