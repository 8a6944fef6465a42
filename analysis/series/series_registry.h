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
    SeriesInfo{
        .name = "domain-run-time",
        .title = "Run time of domains",
        .about = "time that each domain's vCPUs ran, the idle domain's too",
        .quantity = Quantity::kTime,
        .parts = true,
        .figure = trace::Figure::kRunstates,
        .make = MakeDomainRunTime,
    },
    SeriesInfo{
        .name = "pcpu-utilisation",
        .title = "Utilisation of pCPUs",
        .about = "time that each pCPU ran something other than the idle domain",
        .quantity = Quantity::kTime,
        .parts = false,
        .figure = trace::Figure::kRunstates,
        .make = MakePcpuUtilisation,
    },
    SeriesInfo{
        .name = "runstates",
        .title = "Runstates of vCPUs",
        .about = "time of each vCPU running, runnable, blocked, offline, lost",
        .quantity = Quantity::kTime,
        .parts = true,
        .figure = trace::Figure::kRunstates,
        .make = MakeRunstateTimes,
    },
    SeriesInfo{
        .name = "domain-short-summary",
        .title = "Short summary of domains",
        .about = "run time, and time in exits by class (vmcall, intr, hlt, ...), of HVM domains",
        .quantity = Quantity::kTime,
        .parts = false,
        .local = false,
        .figure = trace::Figure::kExits,
        .make = MakeDomainShortSummary,
    },
    SeriesInfo{
        .name = "cr3-time",
        .title = "Run time of address spaces",
        .about = "run time of each cr3 of HVM domains; needs traced cr3 writes (shadow paging)",
        .quantity = Quantity::kTime,
        .parts = true,
        .local = false,
        .figure = trace::Figure::kExitContents,
        .make = MakeCr3Time,
    },
    SeriesInfo{
        .name = "cr3-short-summary",
        .title = "Short summary of address spaces",
        .about = "as domain-short-summary, of each cr3",
        .quantity = Quantity::kTime,
        .parts = false,
        .local = false,
        .figure = trace::Figure::kExitContents,
        .make = MakeCr3ShortSummary,
    },
    SeriesInfo{
        .name = "exits",
        .title = "VM exits by reason",
        .about = "VM exits by reason, in the interval where they end",
        .quantity = Quantity::kCount,
        .parts = true,
        .figure = trace::Figure::kExits,
        .make = MakeExitCounts,
    },
    SeriesInfo{
        .name = "exit-time",
        .title = "Time of VM exits by reason",
        .about = "time between VM exit and entry by reason, with the blocked time of halts",
        .quantity = Quantity::kTime,
        .parts = true,
        .figure = trace::Figure::kExits,
        .make = MakeExitTimes,
    },
    SeriesInfo{
        .name = "guest-interrupts",
        .title = "Interrupts injected into guests",
        .about = "virtual interrupts that Xen injected, by domain and vector",
        .quantity = Quantity::kCount,
        .parts = true,
        .figure = trace::Figure::kInjectedInterrupts,
        .make = MakeGuestInterrupts,
    },
    SeriesInfo{
        .name = "hypercalls",
        .title = "Hypercalls",
        .about = "hypercalls by name, those inside multicalls too",
        .quantity = Quantity::kCount,
        .parts = true,
        .figure = trace::Figure::kPvEvents,
        .make = MakeHypercalls,
    },
    SeriesInfo{
        .name = "grant-maps",
        .title = "Grant operations",
        .about =
            "pages granted: mapped, unmapped, transferred, by the domain that the record names",
        .quantity = Quantity::kCount,
        .parts = true,
        .figure = trace::Figure::kMemory,
        .make = MakeGrantMaps,
    },
    SeriesInfo{
        .name = "lost-records",
        .title = "Lost records",
        .about = "records lost in Xen's buffers, by pCPU",
        .quantity = Quantity::kCount,
        .parts = true,
        .figure = trace::Figure::kLosses,
        .make = MakeLostRecords,
    },
};

// Returns the series of this name, or null.
inline const SeriesInfo* FindSeries(std::string_view name) {
  for (const SeriesInfo& info : kAllSeries) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

}  // namespace xenoscope::analysis
