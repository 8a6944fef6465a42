// How far KASLR moved a kernel of which only the file is at hand, from the addresses that were
// sampled in it. Linux moves it by a multiple of 2 MiB, less than 1 GiB
// (Documentation/arch/x86/x86_64/mm.rst; CONFIG_PHYSICAL_ALIGN). A sampled address is where an
// instruction begins; under a wrong shift one in three or four is, as instructions are that long.
#pragma once

#include <cstddef>
#include <span>

#include "absl/status/statusor.h"
#include "base/mode.h"
#include "symbolizer/image_file.h"
#include "symbolizer/symbol_index.h"

namespace xenoscope::symbolizer {

struct KaslrShift {
  Address shift = 0;
  size_t addresses = 0;  // that were looked at
  size_t fitting = 0;    // that are the beginnings of instructions under this shift
};

// The one shift under which at least nine in ten of the addresses fit, while under no other six in
// ten do. Of fewer than 16 different addresses only that they fit where the file has them is
// found. Errors: no such shift, or several, or too few addresses. Reads at most the
// code of some 10 000 functions.
absl::StatusOr<KaslrShift> FindKaslrShift(const ImageFile& kernel, const SymbolIndex& symbols,
                                          std::span<const Address> sampled);

}  // namespace xenoscope::symbolizer
