// All analyses of the summary, in the order of their groups. To add one, declare its maker here and
// add a line to AllAnalyses().
#pragma once

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

// Parts of these, which cost less: without percentiles, and the last one without the groups of
// device accesses and of guest addresses.
std::unique_ptr<Analysis> MakeRunstateTotals();
std::unique_ptr<Analysis> MakeAffinityTotals();
std::unique_ptr<Analysis> MakeExitTotals();

inline std::vector<std::unique_ptr<Analysis>> AllAnalyses() {
  std::vector<std::unique_ptr<Analysis>> all;
  all.push_back(MakeDomainTotals());
  all.push_back(MakePcpus());
  all.push_back(MakeDomainStates());
  all.push_back(MakeMemory());
  all.push_back(MakeRunstates());
  all.push_back(MakePreemptions());
  all.push_back(MakeHazards());
  all.push_back(MakeAffinity());
  all.push_back(MakeScheduler());
  all.push_back(MakeExits());
  all.push_back(MakeGuestLevels());
  all.push_back(MakeGuestInterrupts());
  all.push_back(MakeGuestCr3());
  all.push_back(MakeDeviceEmulation());
  all.push_back(MakePvEvents());
  all.push_back(MakeGuestEvents());
  all.push_back(MakePower());
  all.push_back(MakeIrqs());
  all.push_back(MakeLogVolume());
  return all;
}

// Returns the kinds of groups of all analyses, in the order of the summary's text.
inline std::vector<GroupInfo> AllGroups() {
  std::vector<GroupInfo> groups;
  for (const std::unique_ptr<Analysis>& analysis : AllAnalyses()) {
    for (const GroupInfo& group : analysis->Groups()) groups.push_back(group);
  }
  return groups;
}

}  // namespace xenoscope::analysis
