// All analyses of the summary, in the order of their groups. To add one, declare its maker here and
// add a line to kAnalyses.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "analysis/analysis.h"

namespace xenoscope::analysis {

std::unique_ptr<Analysis> MakeLogVolume();
std::unique_ptr<Analysis> MakeDomainTotals();
std::unique_ptr<Analysis> MakePcpus();
std::unique_ptr<Analysis> MakeScheduler();
std::unique_ptr<Analysis> MakePower();
std::unique_ptr<Analysis> MakeIrqs();
std::unique_ptr<Analysis> MakeDomainStates();
std::unique_ptr<Analysis> MakeRunstates();
std::unique_ptr<Analysis> MakePreemptions();
std::unique_ptr<Analysis> MakeHazards();
std::unique_ptr<Analysis> MakeAffinity();
std::unique_ptr<Analysis> MakeExits();
std::unique_ptr<Analysis> MakeGuestLevels();
std::unique_ptr<Analysis> MakeGuestInterrupts();
std::unique_ptr<Analysis> MakeGuestCr3();
std::unique_ptr<Analysis> MakeDeviceEmulation();
std::unique_ptr<Analysis> MakePvEvents();
std::unique_ptr<Analysis> MakeGuestEvents();
std::unique_ptr<Analysis> MakeMemory();

// Parts of these, which cost less: without percentiles, and the third one without the groups of
// device accesses and of guest addresses.
std::unique_ptr<Analysis> MakeRunstateTotals();
std::unique_ptr<Analysis> MakeAffinityTotals();
std::unique_ptr<Analysis> MakeExitTotals();
// Parts of these, which cost less: without the groups of device accesses and of guest addresses,
// and without those of vCPUs and switch_infnext.
std::unique_ptr<Analysis> MakeExitReasons();
std::unique_ptr<Analysis> MakeSchedulerOfTrace();

using MakeAnalysis = std::unique_ptr<Analysis> (*)();

struct AnalysisMakers {
  MakeAnalysis whole;
  // Makes an analysis of fewer groups, with the same figures, which costs less; null: there is
  // none.
  MakeAnalysis part = nullptr;
};

inline constexpr std::array kAnalyses = {
    AnalysisMakers{MakeDomainTotals},
    AnalysisMakers{MakePcpus},
    AnalysisMakers{MakeDomainStates},
    AnalysisMakers{MakeMemory},
    AnalysisMakers{MakeRunstates},
    AnalysisMakers{MakePreemptions},
    AnalysisMakers{MakeHazards},
    AnalysisMakers{MakeAffinity},
    AnalysisMakers{MakeScheduler, MakeSchedulerOfTrace},
    AnalysisMakers{MakeExits, MakeExitReasons},
    AnalysisMakers{MakeGuestLevels},
    AnalysisMakers{MakeGuestInterrupts},
    AnalysisMakers{MakeGuestCr3},
    AnalysisMakers{MakeDeviceEmulation},
    AnalysisMakers{MakePvEvents},
    AnalysisMakers{MakeGuestEvents},
    AnalysisMakers{MakePower},
    AnalysisMakers{MakeIrqs},
    AnalysisMakers{MakeLogVolume},
};

// Returns new analyses of all groups.
std::vector<std::unique_ptr<Analysis>> AllAnalyses();

// Whether a group is wanted.
using GroupFilter = std::function<bool(const GroupInfo&)>;

// Returns new analyses of all wanted groups, and of as few others as possible.
std::vector<std::unique_ptr<Analysis>> AnalysesOf(const GroupFilter& wants);

// Returns the kinds of groups of all analyses, in the order of the summary's text.
std::vector<GroupInfo> AllGroups();

}  // namespace xenoscope::analysis
