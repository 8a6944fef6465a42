// All analyses of the summary, in the order in which their groups appear. To add one: its maker
// here and a line in AllAnalyses().
#pragma once

#include <memory>
#include <vector>

#include "analysis/analysis.h"

namespace xenoscope::analysis {

std::unique_ptr<Analysis> MakeDomainStates();
std::unique_ptr<Analysis> MakeRunstates();
std::unique_ptr<Analysis> MakeExits();
std::unique_ptr<Analysis> MakeGuestInterrupts();
std::unique_ptr<Analysis> MakeGuestCr3();
std::unique_ptr<Analysis> MakeDeviceEmulation();
std::unique_ptr<Analysis> MakePvEvents();

inline std::vector<std::unique_ptr<Analysis>> AllAnalyses() {
  std::vector<std::unique_ptr<Analysis>> all;
  all.push_back(MakeDomainStates());
  all.push_back(MakeRunstates());
  all.push_back(MakeExits());
  all.push_back(MakeGuestInterrupts());
  all.push_back(MakeGuestCr3());
  all.push_back(MakeDeviceEmulation());
  all.push_back(MakePvEvents());
  return all;
}

}  // namespace xenoscope::analysis
