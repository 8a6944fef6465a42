// Makes a recording with many samples for a trace that stretch_trace has made of another's:
// stretch_recording IN TRACE OUT COPIES STEP SAMPLES [WIDTH DOMAINS SHIFT LAST]
// Repeats the samples of IN, which are of one source that is drained, as the trace was repeated:
// COPIES times, STEP cycles apart. In each drain so many are added that there are at least SAMPLES
// of them: for each sample those that follow it in the same mode of its vCPU, so that they are in
// as many functions as so many samples of that time would be. Only an HVM guest's own are repeated,
// since their addresses are those of VM exits nearby. OUT has TRACE as a hard link.
//
// With WIDTH, TRACE is of WIDTH hosts in one: each has the samples of all, with DOMAINS added to
// the numbers of the domains of the one before, SHIFT cycles later. The domains of the first one
// alone have symbols. Samples that were drained after LAST are left out.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/error.h"
#include "recording/recording.h"
#include "recording/sample_writer.h"

namespace xenoscope::recording {
namespace {

namespace fs = std::filesystem;

struct Drain {
  VcpuRef vcpu;
  TscRange when;
  std::vector<Entry> entries;
};

struct Stretching {
  std::string in;
  std::string trace;
  std::string out;
  uint64_t copies = 0;
  uint64_t step = 0;
  uint64_t samples = 0;
  uint64_t width = 1;
  uint64_t domains = 0;
  uint64_t shift = 0;
  uint64_t last = UINT64_MAX;
};

std::vector<Drain> DrainsOf(SampleStream stream, uint64_t& samples) {
  std::vector<Drain> drains;
  while (const recording::Sample* sample = stream.reader.Next()) {
    const bool same =
        !drains.empty() && drains.back().vcpu == sample->vcpu && drains.back().when == sample->when;
    if (!same) drains.push_back({sample->vcpu, sample->when, {}});
    Entry entry;
    entry.address = sample->address;
    entry.mode = static_cast<uint8_t>(sample->mode);
    entry.event = static_cast<uint8_t>(sample->event);
    drains.back().entries.push_back(entry);
    ++samples;
  }
  return drains;
}

// What samples of each vCPU and mode are in, in their order.
using Followers = std::map<std::pair<VcpuRef, uint8_t>, std::vector<Entry>>;

Followers FollowersOf(const std::vector<Drain>& drains) {
  Followers followers;
  for (const Drain& drain : drains) {
    for (const Entry& entry : drain.entries) {
      followers[{drain.vcpu, entry.mode}].push_back(entry);
    }
  }
  return followers;
}

// A drain again: that of a copy in time, and of a host.
struct Repeated {
  const Drain* drain = nullptr;
  Cycles later = 0;
  uint64_t host = 0;

  [[nodiscard]] Tsc end() const { return drain->when.end + later; }
};

// Returns all of them in the order of their ends.
std::vector<Repeated> Repeat(const std::vector<Drain>& drains, const Stretching& to) {
  std::vector<Repeated> all;
  all.reserve(drains.size() * to.copies * to.width);
  for (uint64_t copy = 0; copy < to.copies; ++copy) {
    for (uint64_t host = 0; host < to.width; ++host) {
      for (const Drain& drain : drains) {
        const Repeated repeated{&drain, copy * to.step + host * to.shift, host};
        if (repeated.end().value <= to.last) all.push_back(repeated);
      }
    }
  }
  std::ranges::stable_sort(all, {}, &Repeated::end);
  return all;
}

// Copies what the recording is beside its samples and its trace.
void CopyRest(const Stretching& to) {
  fs::create_directory(to.out);
  for (const auto& entry : fs::directory_iterator(to.in)) {
    const std::string name = entry.path().filename();
    if (name == "samples" || name.starts_with("trace.")) continue;
    fs::copy(entry.path(), fs::path(to.out) / name, fs::copy_options::recursive);
  }
  fs::create_hard_link(to.trace, fs::path(to.out) / "trace.xentrace");
  const fs::path about = fs::path(to.out) / "recording.json";
  nlohmann::ordered_json info = nlohmann::ordered_json::parse(std::ifstream(about));
  info["stopped_tsc"] =
      info["stopped_tsc"].get<uint64_t>() + (to.copies - 1) * to.step + (to.width - 1) * to.shift;
  info["host"]["pcpus"] = info["host"]["pcpus"].get<uint64_t>() * to.width;
  const nlohmann::ordered_json domains = info["domains"];
  for (uint64_t host = 1; host < to.width; ++host) {
    for (nlohmann::ordered_json domain : domains) {
      domain["id"] = domain["id"].get<uint64_t>() + host * to.domains;
      domain["name"] = fmt::format("{}-{}", domain["name"].get<std::string>(), host);
      info["domains"].push_back(std::move(domain));
    }
  }
  std::ofstream(about) << info.dump();
}

absl::Status Stretch(const Stretching& to) {
  XENOSCOPE_ASSIGN_OR_RETURN(const Recording in, Recording::Open(to.in));
  if (in.info().sources.size() != 1) return InvalidError("{}: expected one source", to.in);
  XENOSCOPE_ASSIGN_OR_RETURN(SampleStream stream, in.OpenSamples(0));
  uint64_t samples = 0;
  const std::vector<Drain> drains = DrainsOf(std::move(stream), samples);
  if (samples == 0) return NotFoundError("{}: no samples", to.in);
  const std::vector<Repeated> repeated = Repeat(drains, to);
  uint64_t once = 0;
  for (const Repeated& each : repeated) once += each.drain->entries.size();
  if (once == 0) return InvalidError("{}: ends before the first drain", to.trace);
  const uint64_t times = (to.samples + once - 1) / once;

  CopyRest(to);
  fs::create_directory(fs::path(to.out) / "samples");
  const std::string path =
      fs::path(to.out) / "samples" / (in.info().sources.front().name + ".samples");
  XENOSCOPE_ASSIGN_OR_RETURN(SampleWriter writer, SampleWriter::Create(path));
  const Followers followers = FollowersOf(drains);
  std::set<DomainId> hvm;
  for (const DomainInfo& domain : in.info().domains) {
    if (domain.type != DomainType::kPv) hvm.insert(domain.id);
  }
  std::vector<std::map<std::pair<VcpuRef, uint8_t>, size_t>> places(to.width);  // of followers
  size_t unwritten = 0;
  for (const Repeated& each : repeated) {
    const Drain& drain = *each.drain;
    std::vector<Entry> entries;
    entries.reserve(drain.entries.size() * times);
    for (const Entry& entry : drain.entries) {
      const std::vector<Entry>& all = followers.at({drain.vcpu, entry.mode});
      const size_t own = places[each.host][{drain.vcpu, entry.mode}]++ % all.size();
      const bool moves =
          entry.mode == static_cast<uint8_t>(Mode::kXen) || !hvm.contains(drain.vcpu.domain);
      for (size_t i = 0; i < times; ++i) {
        entries.push_back(all[moves ? (own + i) % all.size() : own]);
      }
    }
    const auto domain = static_cast<uint16_t>(drain.vcpu.domain.value + each.host * to.domains);
    const Tsc begin = drain.when.begin + each.later;
    writer.Append({DomainId{domain}, drain.vcpu.vcpu}, {begin, begin, each.end()}, entries);
    if (++unwritten < drains.size()) continue;
    XENOSCOPE_RETURN_IF_ERROR(writer.Flush());
    unwritten = 0;
  }
  XENOSCOPE_RETURN_IF_ERROR(writer.Flush());
  fmt::print("{} samples\n", once * times);
  return absl::OkStatus();
}

bool ReadNumber(std::string_view text, uint64_t& number) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && rest == text.data() + text.size() && number > 0;
}

int Main(int argc, char** argv) {
  Stretching to;
  const bool is_wide = argc == 11;
  if ((argc != 7 && !is_wide) || !ReadNumber(argv[4], to.copies) || !ReadNumber(argv[5], to.step) ||
      !ReadNumber(argv[6], to.samples) ||
      (is_wide && (!ReadNumber(argv[7], to.width) || !ReadNumber(argv[8], to.domains) ||
                   !ReadNumber(argv[9], to.shift) || !ReadNumber(argv[10], to.last)))) {
    fmt::print(
        stderr,
        "usage: stretch_recording IN TRACE OUT COPIES STEP SAMPLES [WIDTH DOMAINS SHIFT LAST]\n");
    return 2;
  }
  to.in = argv[1];
  to.trace = argv[2];
  to.out = argv[3];
  if (const absl::Status status = Stretch(to); !status.ok()) {
    fmt::print(stderr, "stretch_recording: {}\n", Message(status));
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace xenoscope::recording

int main(int argc, char** argv) {
  try {
    return xenoscope::recording::Main(argc, argv);
  } catch (const std::exception& error) {  // files, memory
    std::fputs(error.what(), stderr);
    return 1;
  }
}
