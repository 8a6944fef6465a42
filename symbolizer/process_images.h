// Functions of processes, by what each maps: address -> part of a file -> its function. Files are
// read when an address in them is first asked for, where they are on this machine, and only when
// they are the ones that ran.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/address_space_id.h"
#include "base/ids.h"
#include "base/mode.h"
#include "base/resolver.h"
#include "symbolizer/file_finder.h"
#include "symbolizer/image_file.h"
#include "symbolizer/process_maps.h"
#include "symbolizer/symbol_index.h"
#include "symbolizer/text/perf_maps.h"

namespace xenoscope::symbolizer {

// Stands for every domain of which nothing was said (DOMID_INVALID, xen/include/public/xen.h).
inline constexpr DomainId kEveryDomain{0x7ff4};

// Where in a recording's directory files of processes are, by their build-ids.
inline constexpr const char* kImagesInRecording = "symbols/images";

// A file that an address was found in.
struct UsedFile {
  std::string name;  // its build-id, or BUILD-ID.debug
  Bytes content;
};

class ProcessImages {
 public:
  // `build_id` is hexadecimal, of the file as it ran; empty: not known. The same file has the same
  // number.
  uint32_t AddFile(DomainId domain, const std::string& path, const std::string& build_id);
  // Files of the domain are below `root`, not on this machine; of kEveryDomain: those of domains
  // that have no root of their own.
  void SetRoot(DomainId domain, const std::string& root);
  // A file that stands in for those of its build-id (hexadecimal) that are not on this machine.
  void AddSubstitute(const std::string& build_id, const std::string& path);
  // A directory of files by their build-ids (kImagesInRecording).
  void SetImages(const std::string& directory) { images_ = directory; }
  // For the debug information of files; null: none.
  void SetCache(std::shared_ptr<const IndexCache> cache) { cache_ = std::move(cache); }
  // Asked for files that are not on this machine; null: none is.
  void SetServer(std::shared_ptr<DebugServer> server) { server_ = std::move(server); }
  // The vDSO of the domain's 64-bit processes, which they map as "[vdso]". Errors: it is no ELF
  // file, or has no functions.
  absl::Status SetVdso(DomainId domain, FileContent content);
  // Of the domain's processes: looked into where a process runs what no file has.
  void SetPerfMaps(DomainId domain, PerfMaps maps) {
    perf_maps_.insert_or_assign(domain, std::move(maps));
  }
  // What the process, with its number in the domain, maps; of maps that overlap the later one
  // counts. Files have the numbers of AddFile or, if there are `files`, stand at theirs in it.
  void SetMaps(AddressSpaceId space, DomainId domain, uint32_t pid, ProcessMaps maps,
               std::shared_ptr<const std::vector<uint32_t>> files = nullptr);
  bool Has(AddressSpaceId space) const { return processes_.contains(space.value); }

  // The function at the address: its image is the name of the file. O(maps) and, for a file that
  // was not met before, the time to read it.
  Function Find(AddressSpaceId space, Address address);

  // Where in which file the address is, where it has a function.
  std::optional<CodeLocation> LocationOf(AddressSpaceId space, Address address);

  // The files with functions that were read so far, and their debug files.
  std::vector<UsedFile> UsedFiles() const;

 private:
  struct File {
    DomainId domain;
    std::string path;
    std::string build_id;
    bool read = false;
    std::string why_not;  // it has no functions
    std::unique_ptr<ImageFile> image;
    std::unique_ptr<SymbolIndex> symbols;
  };
  // An address in a file that is read; `file` is null where nothing is mapped.
  struct Position {
    File* file = nullptr;
    std::optional<Address> address;  // as linked, where it is loaded
  };

  struct Process {
    DomainId domain;
    uint32_t pid = 0;
    ProcessMaps maps;
    std::shared_ptr<const std::vector<uint32_t>> files;  // null: as numbered here
    // Where in files_ a map's file is; beyond its end: nowhere.
    size_t FileOf(const ProcessMap& map) const;
  };

  Position PositionOf(AddressSpaceId space, Address address);
  // The function that a compiler at run time told of, if one did.
  std::optional<Function> FindJitFunction(AddressSpaceId space, Address address) const;
  void Read(File& file) const;
  // OK when the file at `path` is the one that ran and has functions, which `file` then has.
  absl::Status ReadFrom(const FileFinder& finder, FileContent content, const std::string& path,
                        File& file) const;

  std::vector<File> files_;
  absl::flat_hash_map<std::string, uint32_t> numbers_;
  absl::flat_hash_map<std::string, std::string> substitutes_;  // by build-id
  absl::flat_hash_map<DomainId, std::string> roots_;
  std::string images_;
  std::shared_ptr<const IndexCache> cache_;
  std::shared_ptr<DebugServer> server_;
  absl::flat_hash_map<uint32_t, Process> processes_;  // by AddressSpaceId
  absl::flat_hash_map<DomainId, uint32_t> vdsos_;     // of files_
  absl::flat_hash_map<DomainId, PerfMaps> perf_maps_;
};

}  // namespace xenoscope::symbolizer
