#include "sampler/libpfm.h"

#include <cstdlib>

#include "base/error.h"
#include "base/shared_library.h"

namespace xenoscope::sampler {
namespace {

absl::StatusOr<Libpfm> StartOnce() {
  XENOSCOPE_ASSIGN_OR_RETURN(const SharedLibrary library,
                             SharedLibrary::Load("libpfm.so.4", "names of events"));
  Libpfm out;
  XENOSCOPE_RETURN_IF_ERROR(
      library.Find("pfm_initialize", out.initialize, "pfm_strerror", out.error_text,
                   "pfm_get_pmu_info", out.pmu_info, "pfm_get_event_info", out.event_info,
                   "pfm_get_event_next", out.next_event, "pfm_get_event_encoding",
                   out.event_encoding, "pfm_get_os_event_encoding", out.os_event_encoding));
  setenv("LIBPFM_ENCODE_INACTIVE", "1", 1);
  if (const int result = out.initialize(); result != PFM_SUCCESS) {
    return InternalError("libpfm4 does not start: {}", out.error_text(result));
  }
  return out;
}

}  // namespace

absl::StatusOr<Libpfm> Libpfm::Start() {
  static const absl::StatusOr<Libpfm> started = StartOnce();
  return started;
}

}  // namespace xenoscope::sampler
