// The processes that a recording tells of, as reports and symbolizer take them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/address_space_id.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "recording/process_reader.h"
#include "recording/recording.h"
#include "symbolizer/process_images.h"
#include "symbolizer/process_maps.h"

namespace xenoscope::profile {

// Memory: for each program that was run, what it mapped; forks have that in common.
class RecordedProcesses {
 public:
  // Of all sources. Errors: those of Recording::OpenSamples.
  static absl::StatusOr<RecordedProcesses> Read(const recording::Recording& recording);
  // Of all sources, what has come since it was called last, of a recording that is being made.
  // Errors: as Read.
  absl::Status ReadNew(const recording::Recording& recording);

  // The memory that the process had at that instant; 0 when nothing is known of it.
  AddressSpaceId SpaceOf(DomainId domain, uint32_t pid, Tsc when) const;
  // "bash (1234)"
  std::string NameOf(AddressSpaceId space) const;
  void ExportTo(symbolizer::ProcessImages& images) const;
  // Records of processes that were not as they should be.
  uint64_t invalid() const { return invalid_; }

 private:
  struct File {
    DomainId domain;
    std::string path;
    std::string build_id;
  };
  struct Space {
    DomainId domain;
    uint32_t pid = 0;
    std::string name;
    symbolizer::ProcessMaps maps;  // of files_
  };
  using Key = std::pair<DomainId, uint32_t>;
  using History = std::vector<std::pair<Tsc, uint32_t>>;  // from when on which space

  void Take(const recording::ProcessRecord& record);
  // The newest space of the process, which is made when there is none.
  Space& Newest(const recording::ProcessRecord& record);
  Space& Begin(DomainId domain, uint32_t pid, Tsc when);

  uint64_t invalid_ = 0;
  std::vector<uint64_t> read_;                         // bytes, by source
  std::vector<Space> spaces_ = std::vector<Space>(1);  // by number; 0 is none
  absl::flat_hash_map<Key, History> histories_;
  std::vector<File> files_;
  absl::flat_hash_map<std::string, uint32_t> file_numbers_;
};

}  // namespace xenoscope::profile
