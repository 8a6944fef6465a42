// The processes of a recording, as reports and the symbolizer need them.
#pragma once

#include <cstdint>
#include <optional>
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

// Knows processes over time. Memory: the mappings of each program that was run; forks share them.
class RecordedProcesses {
 public:
  // Reads the processes of all sources. Errors: those of Recording::OpenSamples.
  static absl::StatusOr<RecordedProcesses> Read(const recording::Recording& recording);
  // Reads what all sources have written since the last call, in a recording that is being made.
  // Errors: as Read.
  absl::Status ReadNew(const recording::Recording& recording);

  // Returns the memory that the process had at that instant; 0 when the process is unknown.
  AddressSpaceId SpaceOf(DomainId domain, uint32_t pid, Tsc when) const;
  // Returns the memory that a source gave this number, in a domain whose processes are not known; 0
  // when it has no maps.
  AddressSpaceId SpaceOf(DomainId domain, AddressSpaceId number) const;
  // Returns "bash (1234)"; of an address space whose process is not known "bash (address space 5)"
  // if `images` have a file with the program's build-id, or "[build-id 0123456789ab] (...)".
  std::string NameOf(AddressSpaceId space, const symbolizer::ProcessImages* images = nullptr) const;
  // Returns the domain on whose behalf the process works, if it does.
  std::optional<DomainId> BehalfOf(AddressSpaceId space) const;
  void ExportTo(symbolizer::ProcessImages& images) const;
  // Returns the number of malformed records.
  uint64_t invalid() const { return invalid_; }

 private:
  struct File {
    DomainId domain;
    std::string path;
    std::string build_id;
  };
  // Address spaces of domains whose processes are not known have numbers from here on in place of
  // that of a process; only some of their mappings are known. Linux numbers processes up to 2^22.
  static constexpr uint32_t kFirstNumber = uint32_t{1} << 31;

  struct Space {
    DomainId domain;
    uint32_t pid = 0;
    std::string name;
    std::optional<DomainId> behalf;
    symbolizer::ProcessMaps maps;  // mappings of files_
  };
  using Key = std::pair<DomainId, uint32_t>;
  using History = std::vector<std::pair<Tsc, uint32_t>>;  // number of the space, from an instant on

  void Take(const recording::ProcessRecord& record);
  // Returns the address space that a source gave this number; makes one when there is none.
  Space& Numbered(DomainId domain, uint32_t number);
  // Takes the map of a kMap or kSpaceMap record.
  void AddMap(const recording::ProcessRecord& record, Space& space);
  // Takes a kFileId record.
  void SetLaterId(const recording::ProcessRecord& record);
  // Returns the newest space of the process; makes one when there is none.
  Space& Newest(const recording::ProcessRecord& record);
  Space& Begin(DomainId domain, uint32_t pid, Tsc when);

  uint64_t invalid_ = 0;
  std::vector<uint64_t> read_;                         // bytes read, by source
  std::vector<Space> spaces_ = std::vector<Space>(1);  // indexed by number; 0 is unused
  absl::flat_hash_map<Key, History> histories_;
  std::vector<File> files_;
  absl::flat_hash_map<std::string, uint32_t> file_numbers_;
  // Files, as indices in files_, whose ids come in a later record, by that record's number.
  absl::flat_hash_map<Key, std::vector<uint32_t>> files_with_later_ids_;
};

}  // namespace xenoscope::profile
