// Functions of processes, by what each maps: address -> part of a file -> its function. Files are
// read when an address in them is first asked for, where they are on this machine, and only when
// they are the ones that ran.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/mode.h"
#include "base/process_space.h"
#include "base/resolver.h"
#include "symbolizer/symbol_index.h"

namespace xenoscope::symbolizer {

// The file's bytes from `offset` on lie at [begin, end).
struct ProcessMap {
  Address begin = 0;
  Address end = 0;
  uint64_t offset = 0;
  uint32_t file = 0;  // as AddFile numbered it
};

class ProcessImages {
 public:
  // `build_id` is hexadecimal, of the file as it ran; empty: not known. The same file has the same
  // number.
  uint32_t AddFile(const std::string& path, const std::string& build_id);
  // A file that stands in for those of its build-id (hexadecimal) that are not on this machine.
  void AddStandIn(const std::string& build_id, const std::string& path);
  // What the process maps; of maps that overlap the later one counts.
  void SetMaps(ProcessSpace space, std::vector<ProcessMap> maps);
  bool Has(ProcessSpace space) const { return maps_.contains(space.value); }

  // The function at the address: its image is the name of the file. O(maps) and, for a file that
  // was not met before, the time to read it.
  Function Find(ProcessSpace space, Address address);

 private:
  // A part of a file as it is loaded (PT_LOAD): [offset, offset + size) lies at `address`.
  struct Part {
    uint64_t offset = 0;
    uint64_t size = 0;
    Address address = 0;
  };
  struct File {
    std::string path;
    std::string build_id;
    bool read = false;
    std::string why_not;  // it has no functions
    std::vector<Part> parts;
    std::unique_ptr<SymbolIndex> symbols;
  };

  void Read(File& file) const;
  // OK when the file at `path` is the one that ran and has functions, which `file` then has.
  static absl::Status ReadFrom(const std::string& path, File& file);

  std::vector<File> files_;
  absl::flat_hash_map<std::string, uint32_t> numbers_;
  absl::flat_hash_map<std::string, std::string> stand_ins_;  // by build-id
  absl::flat_hash_map<uint32_t, std::vector<ProcessMap>> maps_;
};

}  // namespace xenoscope::symbolizer
