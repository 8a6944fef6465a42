// The addresses of Xen's own memory, code included, in every 64-bit address space of PV domains.
#pragma once

#include "base/mode.h"

namespace xenoscope {

// [begin, end): xen/include/public/arch-x86/xen-x86_64.h, HYPERVISOR_VIRT_START and
// HYPERVISOR_VIRT_END.
inline constexpr Address kXenVirtBegin = 0xffff'8000'0000'0000;
inline constexpr Address kXenVirtEnd = 0xffff'8800'0000'0000;

[[nodiscard]] constexpr bool IsXenAddress(Address address) {
  return kXenVirtBegin <= address && address < kXenVirtEnd;
}

}  // namespace xenoscope
