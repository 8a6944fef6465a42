// The part of a recording that the owner of a domain may see, as `push --share` and `record
// --share` make it (store/own_part.h).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "recording/info.h"
#include "recording/recording.h"
#include "store/own_part.h"

namespace xenoscope::cli {

// A URL that begins with this names a file that gets the slice as a guest's agent is sent it
// (store/slice_bytes.h).
inline constexpr std::string_view kSliceScheme = "slice:";

// Returns the domain that the text names. Errors: NotFound; InvalidArgument: it is dom0, which sees
// the whole recording.
absl::StatusOr<recording::DomainInfo> FindSharedDomain(const recording::RecordingInfo& info,
                                                       const std::string& text);

// Returns a text that selects the event whose samples are shared: that of which the domain has
// most, whichever source took them, but for those of vCPUs that waited; empty: it has none. Reads
// all samples. Errors: those of ReadEvents and RecordedSamples.
absl::StatusOr<std::string> SharedEvent(const recording::Recording& recording, DomainId domain);

// Returns how slices of which a part is taken name domains: by number, as two domains of a
// recording may have had one name.
std::string SharedLabel(DomainId domain);

// Returns the domain's part of a slice whose domains are named by SharedLabel.
store::KeyedSlice OwnPartOf(const store::KeyedSlice& whole, const recording::DomainInfo& domain);

// Writes the slice to the file of a URL with kSliceScheme. Errors: those of ToBytes and WriteFile.
absl::Status WriteSlice(const std::string& url, const store::KeyedSlice& slice);

}  // namespace xenoscope::cli
