// A search for the distance by which KASLR moved a kernel of which there is only the file, from
// sampled addresses. Linux moves a kernel by a multiple of 2 MiB, less than 1 GiB
// (Documentation/arch/x86/x86_64/mm.rst; CONFIG_PHYSICAL_ALIGN). A sampled address is the start of
// an instruction. Under a wrong shift only one in three or four is, as instructions have that many
// bytes.
#pragma once

#include <cstddef>
#include <span>

#include "absl/status/statusor.h"
#include "base/mode.h"
#include "symbolizer/image_file.h"
#include "symbolizer/symbol_index.h"

namespace xenoscope::symbolizer {

// The most addresses that the search examines.
inline constexpr size_t kMaxKaslrAddresses = 256;

struct KaslrShift {
  Address shift = 0;
  size_t addresses = 0;  // number of different addresses examined
  size_t fitting = 0;    // number of those that are starts of instructions under this shift
};

// Finds the shift under which at least nine in ten of the addresses fit, if under no other six in
// ten do. With fewer than 16 different addresses the only possible result is that they fit where
// the file has them. Errors: no such shift, several, or too few addresses; or capstone is not
// installed. Reads at most the code of some 10 000 functions.
absl::StatusOr<KaslrShift> FindKaslrShift(const ImageFile& kernel, const SymbolIndex& symbols,
                                          std::span<const Address> sampled);

}  // namespace xenoscope::symbolizer
