// The names of files inside NAME.xeno/, for its reader and its writer.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/ids.h"

namespace xenoscope::recording {

inline constexpr std::string_view kInfoFile = "recording.json";
// The next recording.json while it is being written.
inline constexpr std::string_view kNewInfoFile = "recording.json.new";
inline constexpr std::string_view kChangesFile = "changes.jsonl";
inline constexpr std::string_view kTraceFile = "trace.xentrace";
inline constexpr std::string_view kSamplesDirectory = "samples";
inline constexpr std::string_view kSymbolsDirectory = "symbols";
inline constexpr std::string_view kGuestsDirectory = "guests";
// A file that reserves space while recording, so that the last recording.json fits on a full disk.
inline constexpr std::string_view kReserveFile = ".reserve";

inline std::string SamplesPath(std::string_view source) {
  return fmt::format("{}/{}.samples", kSamplesDirectory, source);
}
inline std::string GuestDirectory(DomainId domain) {
  return fmt::format("{}/{}", kGuestsDirectory, domain.value);
}

}  // namespace xenoscope::recording
