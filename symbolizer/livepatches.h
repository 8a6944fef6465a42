// The livepatches of Xen: the places of their code, and the functions that they replace. Only Xen's
// console lists them, when the debug key 'x' is pressed (`xl debug-keys x; xl dmesg`;
// livepatch_printall() in xen/common/livepatch.c, the same from Xen 4.8 to 4.22):
//
//   (XEN) 'x' pressed - Dumping all livepatch patches
//   (XEN)  name=NAME state=APPLIED(2) CODE (.data=DATA, .rodata=RODATA) using 3 pages.
//   (XEN)     FUNCTION patch OLD(SIZE) with NEW (SIZE)
//   (XEN) build-id=HEX
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/mode.h"

namespace xenoscope::symbolizer {

// A function of a livepatch that replaces another one of the same name.
struct LivepatchFunction {
  std::string name;
  Address address = 0;
  uint64_t size = 0;
  bool operator==(const LivepatchFunction&) const = default;
};

struct Livepatch {
  std::string name;      // name as printed, with '?' for bytes that are not printable ASCII
  Address begin = 0;     // start of its code, which lies in [begin, end), whole pages
  Address end = 0;       // end of its code; equal to begin: it has none
  std::string build_id;  // build-id, hexadecimal; empty: it has none
  std::vector<LivepatchFunction> functions;
  bool operator==(const Livepatch&) const = default;
};

struct LivepatchList {
  // The livepatches by address. Those that were only loaded, or were reverted, are among them:
  // their code may have run earlier or later.
  std::vector<Livepatch> patches;
  // The lines that were left out: lines that cannot be right, and livepatches that lay where others
  // did at another time.
  uint64_t malformed = 0;
  uint64_t displaced = 0;
};

// Returns whether `line`, which may have the console's prefix, begins a list.
bool BeginsLivepatchList(std::string_view line);
// Returns whether a list begins anywhere in the text.
bool HasLivepatchList(std::string_view text);

// Reads the console's output of several times, one after the other; other lines are passed over.
// O(length log length).
LivepatchList ReadLivepatches(std::string_view text);

}  // namespace xenoscope::symbolizer
