// The exit reasons of the VM exits that tests write.
#pragma once

#include <cstdint>

namespace xenoscope::trace {

// VMX: Intel SDM volume 3, appendix C.
inline constexpr uint32_t kVmxExceptionNmi = 0;
inline constexpr uint32_t kVmxExternalInterrupt = 1;
inline constexpr uint32_t kVmxCpuid = 10;
inline constexpr uint32_t kVmxHlt = 12;
inline constexpr uint32_t kVmxVmcall = 18;
inline constexpr uint32_t kVmxCrAccess = 28;
inline constexpr uint32_t kVmxIoInstruction = 30;
inline constexpr uint32_t kVmxMsrWrite = 32;
inline constexpr uint32_t kVmxEptViolation = 48;
inline constexpr uint32_t kVmxEntryFailed = 1U << 31;

// SVM: AMD APM volume 2, appendix C.
inline constexpr uint32_t kVmexitCr0Write = 0x10;
inline constexpr uint32_t kVmexitCr3Write = 0x13;
inline constexpr uint32_t kVmexitPageFault = 0x4e;
inline constexpr uint32_t kVmexitIntr = 0x60;
inline constexpr uint32_t kVmexitCpuid = 0x72;
inline constexpr uint32_t kVmexitHlt = 0x78;
inline constexpr uint32_t kVmexitIoio = 0x7b;
inline constexpr uint32_t kVmexitMsr = 0x7c;
inline constexpr uint32_t kVmexitVmmcall = 0x81;
inline constexpr uint32_t kVmexitNpf = 0x400;

}  // namespace xenoscope::trace
