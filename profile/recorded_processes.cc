#include "profile/recorded_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/error.h"

namespace xenoscope::profile {

using recording::ProcessEntryType;
using recording::ProcessRecord;

namespace {

std::string Hexadecimal(Bytes bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

}  // namespace

absl::StatusOr<RecordedProcesses> RecordedProcesses::Read(const recording::Recording& recording) {
  RecordedProcesses processes;
  XENOSCOPE_RETURN_IF_ERROR(processes.ReadNew(recording));
  return processes;
}

absl::Status RecordedProcesses::ReadNew(const recording::Recording& recording) {
  const bool first = histories_.empty();
  read_.resize(recording.info().sources.size());
  for (size_t i = 0; i < read_.size(); ++i) {
    XENOSCOPE_ASSIGN_OR_RETURN(const recording::SampleStream stream, recording.OpenSamples(i));
    XENOSCOPE_ASSIGN_OR_RETURN(recording::ProcessReader reader,
                               recording::ProcessReader::Open(stream.file.bytes()));
    reader.SkipTo(read_[i]);
    while (const auto record = reader.Next()) Take(*record);
    invalid_ += reader.invalid();
    read_[i] = reader.offset();
  }
  if (!first || histories_.empty()) return absl::OkStatus();
  // No record names the idle task, which every domain has.
  for (const recording::DomainInfo& domain : recording.info().domains) {
    Begin(domain.id, 0, Tsc{0}).name = "[idle]";
  }
  return absl::OkStatus();
}

RecordedProcesses::Space& RecordedProcesses::Begin(DomainId domain, uint32_t pid, Tsc when) {
  histories_[{domain, pid}].emplace_back(when, static_cast<uint32_t>(spaces_.size()));
  Space& space = spaces_.emplace_back();
  space.domain = domain;
  space.pid = pid;
  return space;
}

RecordedProcesses::Space& RecordedProcesses::Newest(const ProcessRecord& record) {
  const auto found = histories_.find({record.domain, record.pid});
  if (found == histories_.end()) return Begin(record.domain, record.pid, Tsc{0});
  return spaces_[found->second.back().second];
}

void RecordedProcesses::Take(const ProcessRecord& record) {
  switch (record.type) {
    case ProcessEntryType::kName:
      if (record.by_exec) {
        Begin(record.domain, record.pid, record.when).name = record.text;
      } else if (record.pid == record.tid) {
        Newest(record).name = record.text;
      }
      return;
    case ProcessEntryType::kMap:
      AddMap(record, Newest(record));
      return;
    case ProcessEntryType::kSpaceMap:
      AddMap(record, Numbered(record.domain, record.pid));
      return;
    case ProcessEntryType::kFork: {
      if (record.pid == record.parent) return;  // a thread
      const auto found = histories_.find({record.domain, record.parent});
      if (found == histories_.end()) {
        Begin(record.domain, record.pid, record.when);
        return;
      }
      Space& parent = spaces_[found->second.back().second];
      std::string name = parent.name;
      symbolizer::ProcessMaps maps = parent.maps.Fork();
      Space& child = Begin(record.domain, record.pid, record.when);
      child.name = std::move(name);
      child.maps = std::move(maps);
      return;
    }
    case ProcessEntryType::kBehalf: {
      // Another source may have recorded later programs of the process before.
      const AddressSpaceId space = SpaceOf(record.domain, record.pid, record.when);
      (space.value != 0 ? spaces_[space.value] : Newest(record)).behalf = record.behalf;
      return;
    }
    case ProcessEntryType::kFileId:
      SetLaterId(record);
      return;
    case ProcessEntryType::kThread:  // these two are for guests/, which follows the threads
    case ProcessEntryType::kCgroup:
    case ProcessEntryType::kExit:  // its number becomes free; a fork says who gets it
      return;
  }
}

RecordedProcesses::Space& RecordedProcesses::Numbered(DomainId domain, uint32_t number) {
  const uint32_t key = kFirstNumber + number % kFirstNumber;
  const auto found = histories_.find({domain, key});
  if (found == histories_.end()) return Begin(domain, key, Tsc{0});
  return spaces_[found->second.back().second];
}

void RecordedProcesses::AddMap(const ProcessRecord& record, Space& space) {
  const std::string build_id = Hexadecimal(record.map.build_id);
  const auto [file, is_new] =
      file_numbers_.try_emplace(fmt::format("{}{}{}{}{}{}{}", record.domain.value, '\0', build_id,
                                            '\0', record.file, '\0', record.text),
                                static_cast<uint32_t>(files_.size()));
  if (is_new && record.file != 0) {
    files_with_later_ids_[{record.domain, record.file}].push_back(file->second);
  }
  if (is_new) files_.push_back({record.domain, std::string(record.text), build_id});
  space.maps.Add({record.map.begin, record.map.end, record.map.offset, file->second});
}

void RecordedProcesses::SetLaterId(const ProcessRecord& record) {
  const auto named = files_with_later_ids_.find({record.domain, record.file});
  if (named == files_with_later_ids_.end()) return;
  for (const uint32_t file : named->second) {
    files_[file].build_id = Hexadecimal(record.map.build_id);
  }
  files_with_later_ids_.erase(named);  // the first one counts, so that all records cost O(records)
}

AddressSpaceId RecordedProcesses::SpaceOf(DomainId domain, uint32_t pid, Tsc when) const {
  const auto found = histories_.find({domain, pid});
  if (found == histories_.end()) return {};
  const History& history = found->second;
  const auto next = std::upper_bound(
      history.begin(), history.end(), when,
      [](Tsc instant, const std::pair<Tsc, uint32_t>& entry) { return instant < entry.first; });
  return {next == history.begin() ? history.front().second : std::prev(next)->second};
}

AddressSpaceId RecordedProcesses::SpaceOf(DomainId domain, AddressSpaceId number) const {
  if (number.value == 0) return {};
  return SpaceOf(domain, kFirstNumber + number.value % kFirstNumber, Tsc{0});
}

std::string RecordedProcesses::NameOf(AddressSpaceId space,
                                      const symbolizer::ProcessImages* images) const {
  if (space.value >= spaces_.size()) return "-";
  const Space& known = spaces_[space.value];
  if (known.pid < kFirstNumber) {
    return fmt::format("{} ({})", known.name.empty() ? "?" : known.name, known.pid);
  }
  // A program lies below its libraries.
  const symbolizer::ProcessMap* const program = known.maps.Lowest();
  const std::string build_id = program == nullptr ? "" : files_[program->file].build_id;
  std::string name = images == nullptr ? "" : images->NameOf(build_id);
  if (name.empty()) name = fmt::format("[build-id {:.12}]", build_id);
  return fmt::format("{} (address space {})", name, known.pid - kFirstNumber);
}

std::optional<DomainId> RecordedProcesses::BehalfOf(AddressSpaceId space) const {
  return space.value < spaces_.size() ? spaces_[space.value].behalf : std::nullopt;
}

void RecordedProcesses::ExportTo(symbolizer::ProcessImages& images) const {
  auto numbers = std::make_shared<std::vector<uint32_t>>();
  numbers->reserve(files_.size());
  for (const File& file : files_)
    numbers->push_back(images.AddFile(file.domain, file.path, file.build_id));
  for (size_t i = 1; i < spaces_.size(); ++i) {
    const Space& space = spaces_[i];
    if (space.maps.empty()) continue;  // a thread of the kernel
    const uint32_t pid =
        space.pid < kFirstNumber ? space.pid : symbolizer::ProcessImages::kNoProcess;
    images.SetMaps({static_cast<uint32_t>(i)}, space.domain, pid, space.maps, numbers);
  }
}

}  // namespace xenoscope::profile
