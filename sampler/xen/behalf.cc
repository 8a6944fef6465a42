#include "sampler/xen/behalf.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <system_error>

#include "absl/status/statusor.h"
#include "sampler/small_file.h"
#include "sampler/xen/host.h"

namespace xenoscope::sampler {
namespace {

// Removes the text up to the next separator, and the separator, and returns the text.
std::string_view TakeWord(std::string_view& text, char separator) {
  const std::string_view word = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

// Removes a number from the beginning of the text, and returns it; nothing if there is none.
std::optional<uint32_t> TakeNumber(std::string_view& text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

std::optional<DomainId> TakeDomain(std::string_view& text) {
  const std::optional<uint32_t> number = TakeNumber(text);
  if (!number || *number >= kFirstReservedDomain.value) return std::nullopt;
  return DomainId{static_cast<uint16_t>(*number)};
}

}  // namespace

std::optional<DomainId> DomainInBackEndName(std::string_view name) {
  constexpr std::string_view kNetwork = "vif";
  const bool network = name.starts_with(kNetwork);
  if (network) name.remove_prefix(kNetwork.size());
  const std::optional<DomainId> domain = TakeDomain(name);
  if (!domain || name.size() < 2 || name[0] != '.') return std::nullopt;
  // What follows the number: ".0-q0-" of a network interface's queue, ".xvda-0" of a disk's ring.
  const bool device_is_number = name[1] >= '0' && name[1] <= '9';
  const bool device_is_name = name[1] >= 'a' && name[1] <= 'z';
  const std::string_view queue = network ? "-q" : "-";
  const bool fits = network ? device_is_number : device_is_name;
  return fits && name.find(queue) != std::string_view::npos ? domain : std::nullopt;
}

std::optional<DomainId> DomainInCommandLine(std::string_view line) {
  while (!line.empty()) {
    if (TakeWord(line, '\0') != "-xen-domid") continue;
    std::string_view number = TakeWord(line, '\0');
    const std::optional<DomainId> domain = TakeDomain(number);
    return number.empty() ? domain : std::nullopt;
  }
  return std::nullopt;
}

std::string BehalfFinder::FileOf(uint32_t pid, std::string_view name) const {
  return fmt::format("{}/{}/{}", proc_, pid, name);
}

// The flags of a task are the ninth word of its stat, the seventh behind the name, which may have
// any characters (proc_pid_stat(5)). Users cannot set this flag.
bool BehalfFinder::IsKernelThread(uint32_t pid) const {
  constexpr uint32_t kKernelThread = 0x00200000;  // PF_KTHREAD
  constexpr int kWordsBefore = 7;
  const std::optional<std::string> stat = ReadSmallFile(FileOf(pid, "stat"));
  if (!stat) return false;
  std::string_view words = *stat;
  words.remove_prefix(std::min(words.rfind(')'), words.size()));
  for (int i = 0; i < kWordsBefore; ++i) TakeWord(words, ' ');
  return (TakeNumber(words).value_or(0) & kKernelThread) != 0;
}

std::optional<DomainId> BehalfFinder::Find(uint32_t pid, std::string_view name) const {
  if (const std::optional<DomainId> domain = DomainInBackEndName(name)) {
    if (IsKernelThread(pid)) return domain;
  }
  // Any program may have such words in its command line, so the toolstack's word counts.
  const std::optional<std::string> line = ReadSmallFile(FileOf(pid, "cmdline"));
  const std::optional<DomainId> domain = line ? DomainInCommandLine(*line) : std::nullopt;
  return domain && device_model_of_(*domain) == pid ? domain : std::nullopt;
}

BehalfOf FindBehalfByXenstore() {
  absl::StatusOr<std::shared_ptr<DomainDirectory>> domains = DomainDirectory::Open();
  if (!domains.ok()) return {};
  const BehalfFinder finder(
      [domains = *std::move(domains)](DomainId id) { return domains->DeviceModelOf(id); });
  return [finder](uint32_t pid, std::string_view name) { return finder.Find(pid, name); };
}

}  // namespace xenoscope::sampler
