// The functions of processes, by what each process maps: address -> part of a file -> its function.
// A file is read when an address in it is first looked up, if it is on this machine and is the one
// that ran.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
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
#include "symbolizer/unwind/unwinder.h"

namespace xenoscope::symbolizer {

// Stands for every domain without an entry of its own (DOMID_INVALID, xen/include/public/xen.h).
inline constexpr DomainId kEveryDomain{0x7ff4};

// The directory, within a recording, of processes' files by build-id.
inline constexpr const char* kImagesInRecording = "symbols/images";

// A file in which an address was found.
struct UsedFile {
  std::string name;  // build-id, or BUILD-ID.debug
  Bytes content;
};

// The mapped files of all processes.
class ProcessImages {
 public:
  static constexpr uint32_t kNoProcess = ~uint32_t{0};

  // Adds a file and returns its number; the same file has the same number. `build_id` is the
  // build-id or content id of the file as it ran, hexadecimal; empty: not known. `path` is empty
  // where only that is known.
  uint32_t AddFile(DomainId domain, const std::string& path, const std::string& build_id);
  // Sets the directory with the domain's files, which are not on this machine. kEveryDomain: for
  // domains without a root of their own.
  void SetRoot(DomainId domain, const std::string& root);
  // Returns a finder of the files of the domain's machine.
  [[nodiscard]] FileFinder FinderOf(DomainId domain) const;
  // Returns a finder of files that were named on this machine, or that the recording has.
  [[nodiscard]] FileFinder FinderHere() const { return FileFinder("/", images_, server_); }
  // Adds a file that replaces files with this build-id or content id (hexadecimal) that are not on
  // this machine.
  void AddSubstitute(const std::string& build_id, const std::string& path);
  // Returns the name of the file that was added for this id; empty: none was.
  [[nodiscard]] std::string NameOf(const std::string& build_id) const;
  // Sets a directory of files by their build-ids (kImagesInRecording).
  void SetImages(const std::string& directory) { images_ = directory; }
  // Sets the cache for the debug information of files; null: none.
  void SetCache(std::shared_ptr<const IndexCache> cache) { cache_ = std::move(cache); }
  // Sets the server for files that are not on this machine; null: none.
  void SetServer(std::shared_ptr<DebugServer> server) { server_ = std::move(server); }
  // Lets code whose file is known by its id, but whose function is not, have the name of its place
  // (base/code_place.h), for those who have the file later: 16,384 places at most, whatever
  // processes do.
  void NamePlaces() { names_places_ = true; }
  // Sets the vDSO of the domain's 64-bit processes, which they map as "[vdso]". Errors: it is no
  // ELF file, or has no functions.
  absl::Status SetVdso(DomainId domain, FileContent content);
  // Sets the domain's JIT functions, which are looked up where a process runs code of no file.
  void SetPerfMaps(DomainId domain, PerfMaps maps) {
    perf_maps_.insert_or_assign(domain, std::move(maps));
  }
  // Sets the maps of the process with this number in the domain. Of maps that overlap, the later
  // one counts. A map's `file` is a number from AddFile or, if there are `files`, an index in that
  // list of such numbers.
  // kNoProcess: it is not known which process this is, and there are other maps beside these.
  void SetMaps(AddressSpaceId space, DomainId domain, uint32_t pid, ProcessMaps maps,
               std::shared_ptr<const std::vector<uint32_t>> files = nullptr);
  // Returns whether only some of its maps are known.
  [[nodiscard]] bool IsPartial(AddressSpaceId space) const;
  [[nodiscard]] bool Has(AddressSpaceId space) const { return processes_.contains(space.value); }
  // Returns whether these are all maps of the process, or one of them has the address.
  [[nodiscard]] bool Knows(AddressSpaceId space, Address address) const;
  // Returns the domain of the process; nothing: it has no maps.
  [[nodiscard]] std::optional<DomainId> DomainOf(AddressSpaceId space) const;

  // Returns the function at the address; its image is the name of the file. O(maps), and for a file
  // that was not met before the time to read it.
  Function Find(AddressSpaceId space, Address address);

  // Returns the file and the place in it of the code at the address; nothing where the address has
  // no function.
  std::optional<CodeLocation> LocationOf(AddressSpaceId space, Address address);

  // Returns what unwinding needs to know of the code at the address. Reads its file if that was not
  // met before; not thread-safe.
  UnwindCode UnwindCodeAt(AddressSpaceId space, Address address);

  // Returns the files that were read so far, and their debug files.
  [[nodiscard]] std::vector<UsedFile> UsedFiles() const;

 private:
  struct File {
    DomainId domain;
    std::string path;
    std::string build_id;
    bool read = false;
    std::string why_not;                   // reason why it has no functions
    std::unique_ptr<ImageFile> image;      // null: it could not be read
    std::unique_ptr<SymbolIndex> symbols;  // null: it has no functions, or could not be read
  };
  // A place in a file that was read; `file` is null where nothing is mapped.
  struct Position {
    File* file = nullptr;
    // Address as linked; nothing where it is not loaded, or the file could not be read.
    std::optional<Address> address;
    uint64_t offset = 0;  // of the byte in the file
  };

  struct Process {
    DomainId domain;
    uint32_t pid = 0;
    ProcessMaps maps;
    // Numbers of the maps' files; null: maps have the numbers of files_ themselves.
    std::shared_ptr<const std::vector<uint32_t>> files;
    // Returns the index in files_ of a map's file; beyond its end: there is none.
    [[nodiscard]] size_t FileOf(const ProcessMap& map) const;
  };

  Position PositionOf(AddressSpaceId space, Address address);
  // Returns the function that a JIT compiler wrote down for the address, if there is one.
  [[nodiscard]] std::optional<Function> FindJitFunction(AddressSpaceId space,
                                                        Address address) const;
  // Returns the name of code without a function: that of its place, or `name`.
  std::string NameOfPlace(const Position& position, std::string_view name);
  void Read(File& file) const;
  // Reads a file of which only the build-id is known.
  void ReadByBuildId(File& file) const;
  // Reads the file at `path`, or an image (FileFinder), into `file`, if it is the one that ran. OK
  // when it has functions, too.
  absl::Status ReadFrom(const FileFinder& finder, FileContent content, const std::string& path,
                        File& file, bool is_image = false) const;

  std::vector<File> files_;
  absl::flat_hash_map<std::string, uint32_t> numbers_;
  absl::flat_hash_map<std::string, std::string> substitutes_;  // paths by build-id
  absl::flat_hash_map<DomainId, std::string> roots_;
  std::string images_;
  std::shared_ptr<const IndexCache> cache_;
  std::shared_ptr<DebugServer> server_;
  absl::flat_hash_map<uint32_t, Process> processes_;  // processes by AddressSpaceId
  absl::flat_hash_map<DomainId, uint32_t> vdsos_;     // indices in files_
  absl::flat_hash_map<DomainId, PerfMaps> perf_maps_;
  bool names_places_ = false;
  absl::flat_hash_set<std::string> places_;  // the names that were given
};

}  // namespace xenoscope::symbolizer
