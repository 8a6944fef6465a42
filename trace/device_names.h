// Names the devices of PCs behind ports and physical addresses, as guests see them: those that have
// a fixed place. Devices on PCI have none, so theirs have no name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace xenoscope::trace {

// "COM1"; empty for a port without a name. Places: IBM PC AT; ATA and PCI standards; for Xen's own,
// and those of its device model, xen/include/public/hvm/ioreq.h (4.17), xen/arch/x86/hvm, QEMU's
// hw/xen and hw/nvram/fw_cfg.c. O(log ports).
[[nodiscard]] std::string_view PortName(uint64_t port);
// "IO-APIC"; of the local APIC at its usual place with the register: "LAPIC EOI". Empty for an
// address without a name. O(log regions).
[[nodiscard]] std::string MmioName(uint64_t address);

}  // namespace xenoscope::trace
