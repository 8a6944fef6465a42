// The rules of an ORC entry, in the form that call frame information has.
#pragma once

#include <string>

#include "symbolizer/unwind/cfi_program.h"
#include "symbolizer/unwind/orc_section.h"

namespace xenoscope::symbolizer {

class OrcRules {
 public:
  // `entry` is not of type kUndefined. An entry without sense gives rules without a CFA.
  explicit OrcRules(const OrcEntry& entry);
  OrcRules(const OrcRules&) = delete;
  OrcRules& operator=(const OrcRules&) = delete;

  // Valid as long as this object is.
  [[nodiscard]] const CfiRules& rules() const { return rules_; }

 private:
  void SetBase(const OrcEntry& entry);
  void SetFramePointer(const OrcEntry& entry);

  CfiRules rules_;
  std::string base_expression_;
  std::string frame_pointer_expression_;
};

}  // namespace xenoscope::symbolizer
