// libpfm4, which names hardware events: it is loaded when it is first needed, as its tables would
// make every command start late.
#pragma once

#include <perfmon/pfmlib.h>

#include "absl/status/statusor.h"

namespace xenoscope::sampler {

// Its functions, as pfm_initialize(3) and its neighbours describe them.
struct Libpfm {
  decltype(pfm_initialize)* initialize = nullptr;
  decltype(pfm_strerror)* error_text = nullptr;
  decltype(pfm_get_pmu_info)* pmu_info = nullptr;
  decltype(pfm_get_event_info)* event_info = nullptr;
  decltype(pfm_get_event_next)* next_event = nullptr;
  decltype(pfm_get_event_encoding)* event_encoding = nullptr;
  decltype(pfm_get_os_event_encoding)* os_event_encoding = nullptr;

  // Loads and initialises it, once. It then encodes fully named events of other processors, too.
  // Errors: it is not installed (NotFound), or does not start (Internal).
  static absl::StatusOr<Libpfm> Start();
};

}  // namespace xenoscope::sampler
