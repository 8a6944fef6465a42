// What the owner of a domain may see of a slice: the rows of the domain's own vCPUs, without the
// names of anything else.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "store/slice.h"

namespace xenoscope::store {

// A slice with the keys of its rows.
struct KeyedSlice {
  Slice slice;
  Dictionary dictionary;
};

// How the host is called in such a part.
inline constexpr std::string_view kAnyHost = "this host";
// How images of Xen's code are called in it: those of the slice are files of dom0.
inline constexpr std::string_view kXenImage = "xen";

// Whose part it is.
struct Owner {
  std::string domain;  // its name in the slice, which no other domain there has
  // What domains are called that the owner may know, by their names in the slice: its own, and
  // those that are nobody's secret. All others are "other 1", "other 2" and so on, those for which
  // the owner waited longest first: a number is of one slice only.
  std::map<std::string, std::string> names;
};

// Returns the owner's part of a slice, with keys of its own:
// - the rows of the domain's vCPUs, unchanged but for names: its time in each state and context,
//   for whom it waited, VM exits, hypercalls, samples by mode, image and function, which are its
//   own or Xen's while that worked for it;
// - of the samples that no trace places, which all vCPUs share a stratum of, the domain's own;
// - what stands out of the domain;
// - the length of the trace, and the number of the domain's samples.
// Nothing else is in it: no row, name or count of another domain, of dom0 or of the host, but the
// times for which the domain waited for each. O(rows).
[[nodiscard]] KeyedSlice TakeOwnPart(const Slice& slice, const Dictionary& dictionary,
                                     const Owner& owner);

}  // namespace xenoscope::store
