#include "sampler/ftrace/cpu_times.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "sampler/small_file.h"

namespace xenoscope::sampler {
namespace {

// The columns of a line: user, nice, system, idle, iowait, irq, softirq, steal. Those behind are
// parts of user and nice.
constexpr size_t kColumns = 8;

std::optional<recording::CpuTimesEntry> ParseCpu(const std::string& line) {
  recording::CpuTimesEntry entry;
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (words.size() < 1 + kColumns) return std::nullopt;
  absl::string_view number = words[0];
  if (!absl::ConsumePrefix(&number, "cpu") || !absl::SimpleAtoi(number, &entry.cpu)) {
    return std::nullopt;
  }
  std::array<uint64_t, kColumns> times{};
  for (size_t i = 0; i < kColumns; ++i) {
    if (!absl::SimpleAtoi(words[1 + i], &times.at(i))) return std::nullopt;
    times.at(i) *= recording::kCpuTimesStep;
  }
  const auto [user, nice, system, idle, iowait, irq, softirq, steal] = times;
  entry.busy = user + nice + system + irq + softirq;
  entry.idle = idle;
  entry.iowait = iowait;
  entry.steal = steal;
  return entry;
}

}  // namespace

std::vector<recording::CpuTimesEntry> ParseCpuTimes(std::string_view text) {
  std::vector<recording::CpuTimesEntry> cpus;
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    if (const auto cpu = ParseCpu(std::string(text.substr(0, end)))) cpus.push_back(*cpu);
    text.remove_prefix(end + 1);
  }
  return cpus;
}

std::vector<recording::CpuTimesEntry> ReadCpuTimes(const std::function<Tsc()>& read_tsc,
                                                   const std::string& path) {
  const Tsc before = read_tsc();
  const std::optional<std::string> text = ReadSmallFile(path);
  const Tsc after = read_tsc();
  std::vector<recording::CpuTimesEntry> cpus = ParseCpuTimes(text.value_or(""));
  for (recording::CpuTimesEntry& cpu : cpus) {
    cpu.before = before.value;
    cpu.after = after.value;
  }
  return cpus;
}

}  // namespace xenoscope::sampler
