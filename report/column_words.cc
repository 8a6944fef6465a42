#include "report/column_words.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

namespace xenoscope::report {
namespace {

constexpr std::array kWords = {
    ColumnWords{"domain", "the guest, or dom0, on whose behalf a processor worked"},
    ColumnWords{"vcpu", "which of the domain's virtual processors"},
    ColumnWords{"pcpu", "the host's processor it ran on, where samples or trace tell"},
    ColumnWords{"mode", "user, kernel: the domain's own code; xen: Xen, at work for it"},
    ColumnWords{"exit",
                "what the trace says: guest, the reason of the VM exit that Xen was handling, "
                "resume (scheduled in, its exit not seen), running (PV: guest or Xen), lost, "
                "untraced"},
    ColumnWords{"process", "the process, where the domain's kernel was sampled from inside"},
    ColumnWords{"image", "the program, module or kernel that the function is of"},
    ColumnWords{"function", "where the processor was; in brackets: why there is no name for it"},
    ColumnWords{"address", "the exact address"},
    ColumnWords{"stack", "the functions that had called each other, the outermost first"},
    ColumnWords{"placing",
                "how a sample's place on the timeline was found: instant, twin (the VM exit of "
                "its NMI), at_exit, stopped, bracketed, untraced"},
    ColumnWords{"subreason",
                "what the VM exit was about, by what its handler recorded: port, MSR, leaf, "
                "hypercall, vector, kind of fault; -: nothing"},
    ColumnWords{"waiting",
                "the vCPUs that were runnable for the pCPU meanwhile: at their cost the time went; "
                "-: none"},
    ColumnWords{"wakeup",
                "the interrupt that woke the vCPU, from then to its next halt, by its vector; "
                "(other): what woke it is not in the trace, as of PV guests; -: not seen to wake"},
    ColumnWords{"line", "file and line, where there is debug information"},
    ColumnWords{"samples",
                "how many, after samples that can have been in several places were "
                "divided among these; so not a whole number"},
    ColumnWords{"share",
                "of the time of all domains: how much of each state the trace saw, times "
                "the samples' part in it; without a trace, of the samples"},
    ColumnWords{"low",
                "the share's lower bound: in 95 of 100 recordings the truth is in low..high"},
    ColumnWords{"high", "the share's upper bound"},
    ColumnWords{"cycles", "of processors: the share times all that is accounted for"},
};

}  // namespace

std::span<const ColumnWords> AllColumnWords() { return kWords; }

std::string ColumnWordsText() {
  std::string out;
  for (const ColumnWords& column : kWords) {
    fmt::format_to(std::back_inserter(out), "{:<10} {}\n", column.key, column.about);
  }
  return out;
}

}  // namespace xenoscope::report
