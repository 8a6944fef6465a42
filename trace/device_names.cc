#include "trace/device_names.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "trace/names.h"

namespace xenoscope::trace {
namespace {

using std::string_view;

// The addresses [begin, end) of a device.
struct Region {
  uint64_t begin = 0;
  uint64_t end = 0;
  string_view name;
};

constexpr Region kPorts[] = {
    {0x00, 0x10, "DMA"},
    {0x10, 0x14, "Xen unplug"},  // QEMU, hw/i386/xen/xen_platform.c: emulated devices switched off
    {0x20, 0x22, "PIC"},
    {0x40, 0x44, "PIT"},
    {0x60, 0x61, "keyboard"},
    {0x61, 0x62, "speaker"},
    {0x64, 0x65, "keyboard"},
    {0x70, 0x72, "RTC"},
    {0x92, 0x93, "port A"},
    {0xa0, 0xa2, "PIC"},
    {0xc0, 0xe0, "DMA"},
    {0xe9, 0xea, "Xen console"},  // arch/x86/hvm/hvm.c: hvm_print_line
    {0x170, 0x178, "IDE 2"},
    {0x1f0, 0x1f8, "IDE"},
    {0x2f8, 0x300, "COM2"},
    {0x376, 0x377, "IDE 2"},
    {0x378, 0x37b, "LPT1"},
    {0x3b0, 0x3e0, "VGA"},
    {0x3f0, 0x3f6, "floppy"},
    {0x3f6, 0x3f7, "IDE"},
    {0x3f7, 0x3f8, "floppy"},
    {0x3f8, 0x400, "COM1"},
    {0x402, 0x403, "BIOS console"},
    {0x4d0, 0x4d2, "PIC"},
    {0x510, 0x51c, "fw_cfg"},
    {0xcf8, 0xd00, "PCI"},
    {0xafe0, 0xafe4, "ACPI GPE"},       // ACPI_GPE0_BLK_ADDRESS_V1
    {0xb000, 0xb008, "ACPI PM"},        // ACPI_PM1A_EVT_BLK_ADDRESS_V1
    {0xb008, 0xb00c, "ACPI PM timer"},  // ACPI_PM_TMR_BLK_ADDRESS_V1
};

constexpr Region kMmio[] = {
    {0xa0000, 0xc0000, "VGA"},         {0xfec00000, 0xfec01000, "IO-APIC"},
    {0xfed00000, 0xfed00400, "HPET"},  {0xfed40000, 0xfed45000, "TPM"},
    {0xfee00000, 0xfee01000, "LAPIC"},
};

constexpr bool InOrder(std::span<const Region> regions) {
  for (size_t i = 1; i < regions.size(); ++i) {
    if (regions[i].begin < regions[i - 1].end) return false;
  }
  return true;
}
static_assert(InOrder(kPorts) && InOrder(kMmio));

string_view NameIn(std::span<const Region> regions, uint64_t address) {
  const auto next = std::ranges::upper_bound(regions, address, {}, &Region::begin);
  if (next == regions.begin() || address >= std::prev(next)->end) return {};
  return std::prev(next)->name;
}

}  // namespace

string_view PortName(uint64_t port) { return NameIn(kPorts, port); }

std::string MmioName(uint64_t address) {
  constexpr uint64_t kLapic = 0xfee00000;
  constexpr string_view kX2Apic = "X2APIC_";
  const string_view device = NameIn(kMmio, address);
  if (device != "LAPIC") return std::string(device);
  // The x2APIC's MSRs have the order of the local APIC's registers, which are 16 bytes apart.
  const string_view msr = MsrName(static_cast<uint32_t>(0x800 + (address - kLapic) / 16));
  if (!msr.starts_with(kX2Apic)) return "LAPIC";
  return "LAPIC " + std::string(msr.substr(kX2Apic.size()));
}

}  // namespace xenoscope::trace
