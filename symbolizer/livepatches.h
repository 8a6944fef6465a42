// Xen's livepatches: where their code lies and which functions take the place of others. Nothing
// but Xen's console tells that, when the debug key 'x' is pressed (`xl debug-keys x; xl dmesg`;
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

// A function of a livepatch that takes another one's place and has its name.
struct LivepatchFunction {
  std::string name;
  Address address = 0;
  uint64_t size = 0;
  bool operator==(const LivepatchFunction&) const = default;
};

struct Livepatch {
  std::string name;      // as printed, '?' for what is no printable ASCII
  Address begin = 0;     // its code lies in [begin, end), whole pages
  Address end = 0;       // begin: it has none
  std::string build_id;  // hexadecimal; empty: it has none
  std::vector<LivepatchFunction> functions;
  bool operator==(const Livepatch&) const = default;
};

struct LivepatchList {
  // By address. Those that were only loaded, or taken back, are among them: their code may have run
  // earlier or later.
  std::vector<Livepatch> patches;
  // Left out: lines of this kind that cannot be right, and livepatches that lay where others did at
  // another time.
  uint64_t malformed = 0;
  uint64_t displaced = 0;
};

// The line with which a list begins; `line` may have the console's prefix.
bool BeginsLivepatchList(std::string_view line);
// Whether one begins anywhere in the text.
bool HasLivepatchList(std::string_view text);

// Reads what the console had at several times, one after the other; other lines are passed over.
// O(length log length).
LivepatchList ReadLivepatches(std::string_view text);

}  // namespace xenoscope::symbolizer
