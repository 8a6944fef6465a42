#include "trace/device_names.h"

#include <gtest/gtest.h>

namespace xenoscope::trace {
namespace {

TEST(DeviceNames, NamesPorts) {
  EXPECT_EQ(PortName(0x3f7), "floppy");
  EXPECT_EQ(PortName(0x3f8), "COM1");
  EXPECT_EQ(PortName(0x3ff), "COM1");
  EXPECT_EQ(PortName(0xcfc), "PCI");
  EXPECT_EQ(PortName(0xb008), "ACPI PM timer");
}

TEST(DeviceNames, LeavesOtherPortsWithoutName) {
  EXPECT_EQ(PortName(0x22), "");
  EXPECT_EQ(PortName(0x400), "");
  EXPECT_EQ(PortName(0xc100), "");
  EXPECT_EQ(PortName(~uint64_t{0}), "");
}

TEST(DeviceNames, NamesMmio) {
  EXPECT_EQ(MmioName(0xa0000), "VGA");
  EXPECT_EQ(MmioName(0xbffff), "VGA");
  EXPECT_EQ(MmioName(0xc0000), "");
  EXPECT_EQ(MmioName(0xfed000f0), "HPET");
  EXPECT_EQ(MmioName(0xfec00010), "IO-APIC");
}

TEST(DeviceNames, NamesRegistersOfLapic) {
  EXPECT_EQ(MmioName(0xfee000b0), "LAPIC EOI");
  EXPECT_EQ(MmioName(0xfee00390), "LAPIC TMCCT");
  EXPECT_EQ(MmioName(0xfee00010), "LAPIC");
  EXPECT_EQ(MmioName(0xfee00ff0), "LAPIC");
}

}  // namespace
}  // namespace xenoscope::trace
