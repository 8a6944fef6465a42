#include "report/profile/column_help.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

namespace xenoscope::report {
namespace {

constexpr std::array kProfile = {
    ColumnHelp{"domain", "the guest, or dom0, on whose behalf a processor worked"},
    ColumnHelp{"vcpu", "which of the domain's virtual processors"},
    ColumnHelp{"pcpu", "the host's processor it ran on, where samples or trace tell"},
    ColumnHelp{"mode", "user, kernel: the domain's own code; xen: Xen, at work for it"},
    ColumnHelp{"exit",
               "what the trace says: guest, the reason of the VM exit that Xen was handling, "
               "resume (scheduled in, its exit not seen), running (PV: guest or Xen), lost, "
               "untraced"},
    ColumnHelp{"process", "the process, where the domain's kernel was sampled from inside"},
    ColumnHelp{"image", "the program, module or kernel that the function is of"},
    ColumnHelp{"function", "where the processor was; in brackets: why there is no name for it"},
    ColumnHelp{"address", "the exact address"},
    ColumnHelp{"stack",
               "the functions that had called each other, the outermost first, with those that the "
               "compiler inlined"},
    ColumnHelp{"placing",
               "how a sample's place on the timeline was found: instant, twin (the VM exit of "
               "its NMI), at_exit, stopped, bracketed, untraced"},
    ColumnHelp{"subreason",
               "what the VM exit was about, by what its handler recorded: port, MSR, leaf, "
               "hypercall, vector, kind of fault; -: nothing"},
    ColumnHelp{"waiting",
               "the vCPUs that were runnable for the pCPU meanwhile: at their cost the time went; "
               "-: none"},
    ColumnHelp{"wakeup",
               "the interrupt that woke the vCPU, from then to its next halt, by its vector; "
               "(other): what woke it is not in the trace, as of PV guests; -: not seen to wake"},
    ColumnHelp{"line", "file and line, where there is debug information"},
    ColumnHelp{"samples",
               "how many, after samples that can have been in several places were "
               "divided among these; so not a whole number"},
    ColumnHelp{"share",
               "of the time of all domains: how much of each state the trace saw, times "
               "the samples' part in it; without a trace, of the samples"},
    ColumnHelp{"low", "the share's lower bound: in 95 of 100 recordings the truth is in low..high"},
    ColumnHelp{"high", "the share's upper bound"},
    ColumnHelp{"cycles", "of processors: the share times all that is accounted for"},
};

constexpr std::array kOverview = {
    ColumnHelp{"samples attributed", "those that have a place: a domain, a mode, a time"},
    ColumnHelp{"cycles", "of processors, for all domains, idle time left out"},
    ColumnHelp{"time", "from the first to the last instant at which samples were taken"},
    ColumnHelp{"Xen's share", "the part of all domains' time in which Xen worked for them"},
    ColumnHelp{"losses", "kinds of samples and records that are missing or have no place"},
    ColumnHelp{
        "samples against trace",
        "whether each domain's part of traced time is the same in the samples and in the trace, "
        "but for chance"},
    ColumnHelp{"of Xen's time",
               "of the time that Xen worked, the part that it worked for this domain"},
};

constexpr std::array kChecks = {
    ColumnHelp{"sampled", "the domain's part of the samples of traced time"},
    ColumnHelp{"traced", "the domain's part of the time that the trace says domains ran"},
    ColumnHelp{"error",
               "the standard error of what was sampled; when it differs from what was traced by "
               "more than 3 of these, samples or trace are wrong"},
};

constexpr std::array kExits = {
    ColumnHelp{"domain", "the guest whose VM exits these are"},
    ColumnHelp{"exit", "why the guest left to Xen"},
    ColumnHelp{"count", "how many there were, of those that were traced whole"},
    ColumnHelp{"cycles",
               "of processors: all that they spent in Xen for these exits, also after the vCPU "
               "had waited for a pCPU"},
    ColumnHelp{"share", "of the cycles of all VM exits"},
    ColumnHelp{"each", "cycles in Xen for one exit, on average"},
    ColumnHelp{"p5",
               "5 of 100 exits took less, until the guest went on or its vCPU waited for a pCPU; "
               "what it was blocked counts"},
    ColumnHelp{"p50", "half of the exits took less"},
    ColumnHelp{"p95", "95 of 100 exits took less"},
    ColumnHelp{"octaves",
               "how many exits took how long, from 64 cycles to 64 G: each bar is for times twice "
               "as long as the one before"},
};

constexpr std::array kDiff = {
    ColumnHelp{"before",
               "in the first: the share of all time, or of the domain's own (--domain); of a "
               "processor (--per second), where 200 % is two; or cycles a unit of work (--work); "
               "samples where the event counts no time"},
    ColumnHelp{"after", "in the second, the same"},
    ColumnHelp{"difference", "after less before"},
    ColumnHelp{"low",
               "the difference's lower bound: in 95 of 100 pairs of recordings the truth is in "
               "low..high"},
    ColumnHelp{"high", "the difference's upper bound"},
    ColumnHelp{"p",
               "how often chance alone would make such a difference, corrected for how many rows "
               "are compared; below 0.05 it counts as more than chance"},
    ColumnHelp{"note", "new: no samples before; gone: none after"},
};

constexpr std::array kAnnotate = {
    ColumnHelp{"share", "of the function's samples"},
    ColumnHelp{"samples", "how many were in this line, with what was inlined into it"},
    ColumnHelp{"exit", "those of them at this VM exit (--by exit)"},
    ColumnHelp{"line", "of the source; of instructions the offset in the function"},
    ColumnHelp{"code", "as the file has it, or as it was disassembled"},
};

constexpr std::array kSummary = {
    ColumnHelp{"count", "how many there were, of those that were traced whole"},
    ColumnHelp{"time", "in all of them; cycles in csv and json"},
    ColumnHelp{"share", "of the length of the trace; 100 % is one pCPU or vCPU"},
    ColumnHelp{"average", "of one"},
    ColumnHelp{"5%, 50%, 95%",
               "so many of 100 took no longer; of runstates: so much of the time was in none that "
               "lasted longer"},
};

constexpr std::array kTop = {
    ColumnHelp{"cpu", "time that the domain's vCPUs ran, of the window: two busy vCPUs are 200 %"},
    ColumnHelp{"runnable", "of its vCPUs' time: they wanted to run, and others did"},
    ColumnHelp{"idle", "of its vCPUs' time: blocked, or offline"},
    ColumnHelp{"hypercalls/s", "of all its vCPUs"},
    ColumnHelp{"exits/s", "VM exits of all its vCPUs"},
    ColumnHelp{"most exits/s", "the three most frequent reasons"},
};

constexpr std::array kTables = {
    TableHelp{"profile", "", kProfile},
    TableHelp{"overview", "the overview of a page (--format html)", kOverview},
    TableHelp{"checks", "samples against the trace, in pages and as \"checks\" in JSON", kChecks},
    TableHelp{"exits", "the VM exits in a page", kExits},
    TableHelp{"diff", "xenoscope diff", kDiff},
    TableHelp{"annotate", "xenoscope annotate", kAnnotate},
    TableHelp{"summary", "xenoscope summary", kSummary},
    TableHelp{"top", "the domains in xenoscope top", kTop},
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
    if (!table.where.empty()) fmt::format_to(std::back_inserter(out), "\nOf {}:\n", table.where);
    size_t width = 0;
    for (const ColumnHelp& column : table.columns) width = std::max(width, column.key.size());
    for (const ColumnHelp& column : table.columns) {
      fmt::format_to(std::back_inserter(out), "{:<{}}  {}\n", column.key, width, column.about);
    }
  }
  return out;
}

}  // namespace xenoscope::report
