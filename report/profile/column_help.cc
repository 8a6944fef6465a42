#include "report/profile/column_help.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

namespace xenoscope::report {
namespace {

constexpr std::array kProfile = {
    ColumnHelp{"domain", "the domain that a pCPU worked for"},
    ColumnHelp{"vcpu", "the virtual CPU, as d1v0: the vCPU 0 of the domain 1"},
    ColumnHelp{"pcpu", "the physical CPU that it ran on, where samples or trace contain it"},
    ColumnHelp{"mode", "user, kernel: code of the domain; xen: Xen, on behalf of the domain"},
    ColumnHelp{"exit",
               "state of the vCPU in the trace: guest; the reason of the VM exit that Xen was "
               "handling; resume (scheduled in, exit not in the trace); context-switch (Xen "
               "switches to it); running (PV: guest or Xen); lost; untraced"},
    ColumnHelp{
        "process",
        "the process, where the domain's own kernel took the sample, or recorded its threads "
        "(record --threads); -: not known"},
    ColumnHelp{"thread",
               "the thread that the domain's kernel had put on the vCPU (record --threads); Xen's "
               "samples are of the thread for whose vCPU it worked; -: not recorded, or lost"},
    ColumnHelp{"container",
               "the container or service of the thread, by its cgroup; -: none, or not known"},
    ColumnHelp{"behalf",
               "the domain on whose behalf the process of dom0 works: as its device model, or as a "
               "thread of a back end; Xen's samples: the process for whose vCPU it worked (record "
               "--threads); -: none, or not known"},
    ColumnHelp{"image", "the program, module or kernel that contains the function"},
    ColumnHelp{"function", "the sampled function; in brackets: the reason why it has no name"},
    ColumnHelp{"address", "the exact address"},
    ColumnHelp{"page", "the address's page of 4 KiB: where code without symbols is"},
    ColumnHelp{"stack",
               "the call chain, outermost function first, with inlined functions; before Xen's "
               "functions the VM exit (HVM: reason and subreason, resume, or transition: entering "
               "or leaving the guest)"},
    ColumnHelp{"placing",
               "how the time of the sample was determined: instant (recorded), twin (the VM exit "
               "of its NMI), at_exit (another VM exit), stopped (the vCPU stopped running), "
               "clocked (predicted by the even clock of samples), bracketed (estimated within a "
               "drain interval), untraced"},
    ColumnHelp{"subreason",
               "detail of the VM exit that its handler recorded: port, MSR, CPUID leaf, "
               "hypercall, vector, kind of fault; -: none"},
    ColumnHelp{"waiting", "the vCPUs that were runnable on the same pCPU meanwhile; -: none"},
    ColumnHelp{"wakeup",
               "vector of the interrupt that woke the vCPU, until its next halt; (other): another "
               "cause, or a PV guest; -: no wake-up in the trace"},
    ColumnHelp{"line", "file and line, where there is debug information"},
    ColumnHelp{"host", "the host that was recorded; -: the recording does not say its name"},
    ColumnHelp{"samples",
               "number of samples; not an integer, because a sample with several possible places "
               "is divided among them"},
    ColumnHelp{"share",
               "part of the time of all domains: the time of each state in the trace, times the "
               "row's part of the samples in it; without a trace, part of the samples"},
    ColumnHelp{"low",
               "lower bound of the share's 95 % confidence interval; traced: the trace measures "
               "the share exactly"},
    ColumnHelp{"high", "upper bound of the share's 95 % confidence interval"},
    ColumnHelp{"cycles", "CPU cycles: the share times all cycles accounted for"},
    ColumnHelp{"total_share",
               "--children: the same for the row's functions and all that they called; a sample "
               "counts once, however often they are in its call chain (title: total; then the "
               "title of share is self)"},
    ColumnHelp{"total_low, total_high",
               "bounds of the total's 95 % confidence interval (titles: low, high)"},
    ColumnHelp{"total_samples, total_cycles", "samples and cycles of the total (csv and json)"},
    ColumnHelp{"EVENT_share", "of several events: part of the event's samples (title: the event)"},
    ColumnHelp{"ipc", "instructions per cycle, where both were counted"},
    ColumnHelp{"branch_miss_rate, cache_miss_rate", "part of branches or cache references"},
    ColumnHelp{"EVENT_pti", "count of the event per thousand instructions (title: EVENT PTI)"},
    ColumnHelp{"RATIO_low, RATIO_high",
               "bounds of the ratio's 95 % confidence interval; empty: there is none (titles: low, "
               "high)"},
    ColumnHelp{"exits",
               "of rows by exit alone, or with domain and vcpu: how often the trace has it"},
    ColumnHelp{"per_exit",
               "cycles of one such exit, in Xen; of another event: how often it happened in one, "
               "by samples (title: per exit)"},
    ColumnHelp{"per_exit_low, per_exit_high",
               "bounds of its 95 % confidence interval; empty: the trace measures it (titles: low, "
               "high)"},
};

constexpr std::array kOverview = {
    ColumnHelp{"samples attributed", "samples with a domain, a mode and a time"},
    ColumnHelp{"cycles", "CPU cycles of all domains, without idle time"},
    ColumnHelp{"time", "time between the first and the last sample"},
    ColumnHelp{"Xen's share", "part of all domains' time in which Xen worked for them"},
    ColumnHelp{"losses", "kinds of samples and records that are missing or not attributed"},
    ColumnHelp{
        "samples and trace",
        "whether samples and trace give each domain the same part of the time, within 3 standard "
        "errors"},
    ColumnHelp{"part of Xen", "part of Xen's time in which it worked for this domain"},
};

constexpr std::array kChecks = {
    ColumnHelp{"sampled", "the domain's part of the samples that were taken while tracing"},
    ColumnHelp{"traced", "the domain's part of all domains' run time in the trace"},
    ColumnHelp{"error",
               "standard error of the sampled part; a difference of more than 3 of them means that "
               "samples or trace are wrong"},
};

constexpr std::array kExits = {
    ColumnHelp{"domain", "the domain of the VM exits"},
    ColumnHelp{"exit", "the reason of the VM exits"},
    ColumnHelp{
        "subreason",
        "what they were about, as the handler recorded it: port, MSR, CPUID leaf, hypercall, "
        "vector, kind of fault; -: nothing recorded"},
    ColumnHelp{"count", "number of VM exits whose beginning and end are in the trace"},
    ColumnHelp{"cycles",
               "CPU cycles in Xen for these exits, including those after the vCPU waited for a "
               "pCPU"},
    ColumnHelp{"share", "part of the cycles of all VM exits"},
    ColumnHelp{"each", "mean time in Xen for one exit"},
    ColumnHelp{"p5",
               "5th percentile of the time until the guest resumed or its vCPU waited for a pCPU; "
               "includes blocked time"},
    ColumnHelp{"p50", "median of the same time"},
    ColumnHelp{"p95", "95th percentile of the same time"},
    ColumnHelp{"octaves",
               "histogram of the same time, from 64 cycles to 64 G; each bar covers twice the time "
               "of the one before"},
};

constexpr std::array kDiff = {
    ColumnHelp{"before",
               "figure of the first recording: part of all time, or of the domain's time with "
               "--domain; CPUs with --per second (200 % is two CPUs); cycles per unit of work with "
               "--work; samples where the event does not count time"},
    ColumnHelp{"after", "the same figure of the second recording"},
    ColumnHelp{"difference", "after minus before"},
    ColumnHelp{"low", "lower bound of the difference's 95 % confidence interval"},
    ColumnHelp{"high", "upper bound of the difference's 95 % confidence interval"},
    ColumnHelp{"p",
               "probability of such a difference by chance, corrected for the number of rows; "
               "below 0.05 the difference is significant"},
    ColumnHelp{"note", "new: no samples before; gone: no samples after"},
};

constexpr std::array kAnnotate = {
    ColumnHelp{"share", "part of the function's samples"},
    ColumnHelp{"samples",
               "number of samples in this line, with those of functions inlined into it"},
    ColumnHelp{"exit", "samples at this VM exit (--by exit)"},
    ColumnHelp{"line", "line of the source, or offset of the instruction in the function"},
    ColumnHelp{"code", "source line or disassembled instruction"},
};

constexpr std::array kSummary = {
    ColumnHelp{"count", "number of events whose beginning and end are in the trace"},
    ColumnHelp{"time", "sum of their times; cycles in csv and json"},
    ColumnHelp{"share", "part of the length of the trace; 100 % is one pCPU or vCPU"},
    ColumnHelp{"average", "mean time of one"},
    ColumnHelp{"5%, 50%, 95%",
               "percentiles of the time of one; percentiles of runstates are weighted by time: 50% "
               "of the time was spent in intervals that lasted no longer"},
};

constexpr std::array kTop = {
    ColumnHelp{"cpu", "run time of the domain's vCPUs; two busy vCPUs are 200 %"},
    ColumnHelp{"runnable", "part of its vCPUs' time in which they waited for a pCPU"},
    ColumnHelp{"idle", "part of its vCPUs' time in which they were blocked or offline"},
    ColumnHelp{"hypercalls/s", "hypercalls of all its vCPUs"},
    ColumnHelp{"exits/s", "VM exits of all its vCPUs"},
    ColumnHelp{"top exits/s", "the three most frequent reasons of VM exits"},
};

constexpr std::array kTables = {
    TableHelp{"profile", "", kProfile},
    TableHelp{"overview", "Overview of --format html", kOverview},
    TableHelp{"checks", "Samples and trace in --format html, \"checks\" in json", kChecks},
    TableHelp{"exits", "VM exits of --format html", kExits},
    TableHelp{"diff", "xenoscope diff", kDiff},
    TableHelp{"annotate", "xenoscope annotate", kAnnotate},
    TableHelp{"summary", "xenoscope summary", kSummary},
    TableHelp{"top", "Domains of xenoscope top", kTop},
};

}  // namespace

std::span<const TableHelp> AllColumnHelp() { return kTables; }

std::string_view HelpOf(std::string_view table, std::string_view column) {
  const auto of = std::ranges::find(kTables, table, &TableHelp::key);
  if (of == kTables.end()) return {};
  const auto words = std::ranges::find(of->columns, column, &ColumnHelp::key);
  return words == of->columns.end() ? std::string_view() : words->about;
}

std::string ColumnHelpText() {
  std::string out;
  for (const TableHelp& table : kTables) {
    if (!table.where.empty()) fmt::format_to(std::back_inserter(out), "\n{}:\n", table.where);
    size_t width = 0;
    for (const ColumnHelp& column : table.columns) width = std::max(width, column.key.size());
    for (const ColumnHelp& column : table.columns) {
      fmt::format_to(std::back_inserter(out), "{:<{}}  {}\n", column.key, width, column.about);
    }
  }
  return out;
}

}  // namespace xenoscope::report
