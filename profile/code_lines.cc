#include "profile/code_lines.h"

#include "recording/info.h"
#include "symbolizer/domain_symbols.h"
#include "symbolizer/image_file.h"

namespace xenoscope::profile {

std::vector<std::string> InlinedFunctions(const std::vector<Frame>& frames) {
  std::vector<std::string> names;
  names.reserve(frames.size());
  for (const Frame& frame : frames) names.push_back(frame.function);
  if (!names.empty()) names.pop_back();  // the function itself
  return names;
}

CodeLines FindCodeLines(symbolizer::DomainSymbols& symbols, const recording::RecordingInfo* info,
                        DomainId domain, Mode mode, AddressSpaceId space, Address address) {
  CodeLines lines;
  if (mode == Mode::kXen && info != nullptr) lines.build_id = info->xen.build_id;
  const auto place = symbols.LocationOf(domain, mode, space, address);
  if (!place || place->file == nullptr) return lines;
  lines.path = place->file->path();
  lines.build_id = place->file->elf().BuildId();
  if (place->file->debug_info() == nullptr) return lines;
  for (const symbolizer::CodeFrame& frame : place->file->debug_info()->FramesAt(place->address)) {
    lines.inlined.push_back({std::string(frame.function), {std::string(frame.file), frame.line}});
  }
  return lines;
}

}  // namespace xenoscope::profile
