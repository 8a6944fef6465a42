// The interface of a rule, and all rules. To add one: a file in findings/rules, a declaration and a
// line in kRules.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "findings/finding.h"
#include "findings/results.h"

namespace xenoscope::findings {

// Adds what stands out in the results. A rule claims no more than its figures allow: of an estimate
// it compares the near end of the interval with its threshold. O(rows of the results).
using FindFunction = void(const Results& results, std::vector<Finding>& out);

FindFunction FindHotFunctions;
FindFunction FindHotDomain;
FindFunction FindHotModes;
FindFunction FindWaits;
FindFunction FindStarvedDom0;
FindFunction FindWakeLatency;
FindFunction FindMigrations;
FindFunction FindPreemptedKernels;
FindFunction FindShortBlocks;
FindFunction FindExits;
FindFunction FindTimers;
FindFunction FindLocalApic;
FindFunction FindHypercalls;
FindFunction FindLosses;
FindFunction FindBias;
FindFunction FindResonance;

struct Rule {
  std::string_view key;  // stable: in JSON
  FindFunction* find;
};

inline constexpr std::array kRules = {
    Rule{"hot_function", FindHotFunctions},
    Rule{"hot_domain", FindHotDomain},
    Rule{"hot_mode", FindHotModes},
    Rule{"waits", FindWaits},
    Rule{"starved_dom0", FindStarvedDom0},
    Rule{"wake_latency", FindWakeLatency},
    Rule{"migrations", FindMigrations},
    Rule{"preempted_kernel", FindPreemptedKernels},
    Rule{"short_blocks", FindShortBlocks},
    Rule{"exits", FindExits},
    Rule{"timers", FindTimers},
    Rule{"local_apic", FindLocalApic},
    Rule{"hypercalls", FindHypercalls},
    Rule{"losses", FindLosses},
    Rule{"bias", FindBias},
    Rule{"resonance", FindResonance},
};

}  // namespace xenoscope::findings
