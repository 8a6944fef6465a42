#include "sampler/xen/host.h"

#include <cpuid.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <x86intrin.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstring>
#include <ctime>
#include <optional>
#include <thread>

#include "absl/strings/match.h"
#include "base/error.h"
#include "sampler/small_file.h"

namespace xenoscope::sampler {
namespace {

std::string Sysfs(const std::string& name) {
  return ReadSmallFile("/sys/hypervisor/" + name).value_or("");
}

// Returns bytes in hexadecimal, as Linux gives the build-id as bytes.
std::string Hexadecimal(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

struct CpuidResult {
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
};

// Returns CPUID as Xen answers it. A PV domain must ask Xen explicitly, since the processor itself
// may answer otherwise (xen/include/public/arch-x86/xen.h, XEN_EMULATE_PREFIX).
CpuidResult XenCpuid(uint32_t leaf, uint32_t sub_leaf) {
  CpuidResult result;
  if (Dom0IsPv()) {
    // NOLINTNEXTLINE(hicpp-no-assembler): there is no intrinsic
    asm volatile(".byte 0x0f, 0x0b, 0x78, 0x65, 0x6e; cpuid"
                 : "=a"(result.eax), "=b"(result.ebx), "=c"(result.ecx), "=d"(result.edx)
                 : "a"(leaf), "c"(sub_leaf));
  } else {
    __cpuid_count(leaf, sub_leaf, result.eax, result.ebx, result.ecx, result.edx);
  }
  return result;
}

// Returns the first of Xen's leaves (xen/include/public/arch-x86/cpuid.h), which has Xen's name.
std::optional<uint32_t> XenLeaves() {
  constexpr uint32_t kFirst = 0x40000000;
  constexpr uint32_t kStep = 0x100;
  constexpr uint32_t kEnd = 0x40010000;
  for (uint32_t base = kFirst; base < kEnd; base += kStep) {
    const CpuidResult id = XenCpuid(base, 0);
    std::array<char, 12> name{};
    std::memcpy(name.data(), &id.ebx, 4);
    std::memcpy(name.data() + 4, &id.ecx, 4);
    std::memcpy(name.data() + 8, &id.edx, 4);
    if (std::string_view(name.data(), name.size()) == "XenVMMXenVMM") return base;
  }
  return std::nullopt;
}

// Returns the host's TSC rate: leaf base + 3, sub-leaf 2, EAX, in kHz.
uint64_t HostTscHz() {
  const std::optional<uint32_t> base = XenLeaves();
  if (!base) return 0;
  return uint64_t{XenCpuid(*base + 3, 2).eax} * 1000;
}

recording::CpuVendor ProcessorVendor() {
  const std::string text = ReadSmallFile("/proc/cpuinfo").value_or("");
  if (absl::StrContains(text, "GenuineIntel")) return recording::CpuVendor::kIntel;
  if (absl::StrContains(text, "AuthenticAMD") || absl::StrContains(text, "HygonGenuine")) {
    return recording::CpuVendor::kAmd;
  }
  return recording::CpuVendor::kUnknown;
}

}  // namespace

Tsc ReadTsc() {
  _mm_lfence();  // orders it after earlier instructions
  return Tsc{__rdtsc()};
}

uint64_t MeasureTscHz() {
  using std::chrono::steady_clock;
  const auto begin = steady_clock::now();
  const Tsc first = ReadTsc();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto end = steady_clock::now();
  const Cycles cycles = ReadTsc() - first;
  return static_cast<uint64_t>(static_cast<double>(cycles) /
                               std::chrono::duration<double>(end - begin).count());
}

// Reads leaf base + 3, sub-leaf 0: EAX bit 0: emulated; ECX: kHz.
DomainTsc ReadDomainTsc() {
  const std::optional<uint32_t> base = Sysfs("type") == "xen" ? XenLeaves() : std::nullopt;
  if (!base) return {};
  const CpuidResult time = XenCpuid(*base + 3, 0);
  return {uint64_t{time.ecx} * 1000, (time.eax & 1) == 0};
}

bool Dom0IsPv() { return Sysfs("guest_type") == "PV"; }

recording::XenInfo ReadXenInfo() {
  recording::XenInfo info;
  const std::string major = Sysfs("version/major");
  if (!major.empty()) {
    info.version = fmt::format("{}.{}{}", major, Sysfs("version/minor"), Sysfs("version/extra"));
  }
  info.build_id = Hexadecimal(Sysfs("properties/buildid"));
  info.command_line = XenCommandLine();
  return info;
}

recording::HostInfo ReadHostInfo() {
  recording::HostInfo info;
  if (Sysfs("type") == "xen") info.clock_hz = HostTscHz();
  info.vendor = ProcessorVendor();
  utsname names{};
  if (uname(&names) == 0) {
    info.name = names.nodename;
    info.kernel = names.release;
  }
  return info;
}

recording::WallClock ReadWallClock() {
  constexpr uint64_t kNsPerSecond = 1'000'000'000;
  constexpr uint64_t kNsPerUs = 1000;
  recording::WallClock clock;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  clock.utc_ns =
      static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
  timex state{};
  // An error of the call leaves what the kernel says of a clock that nothing sets: 16 s.
  clock.error_ns =
      adjtimex(&state) < 0 ? 16 * kNsPerSecond : static_cast<uint64_t>(state.maxerror) * kNsPerUs;
  return clock;
}

}  // namespace xenoscope::sampler
