// The programs and libraries in guests' address spaces: where each file was loaded, and its
// build-id. Nobody says these to dom0, but they are in the guest's memory: a file that is mapped to
// be executed begins with its ELF header, which lies below its code and names its parts.
//
//   [ ELF header | build-id | ... ]  [ code ... address ... ]        one file
//   ^ found by looking at the pages below the address
//
// The address is where a vCPU was found, or a word on its stack that points into executable memory.
// An address space is known by its top page table. The guest may put anything there: what is found
// only says which file a user has to give, and the work is bounded, for each sample and in time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/ids.h"
#include "base/mode.h"
#include "base/tsc.h"
#include "recording/sample_writer.h"
#include "sampler/vcpu/guest_pages.h"
#include "sampler/vcpu/vcpu_calls.h"

namespace xenoscope::sampler {

class GuestPrograms {
 public:
  // Limit of new files, and of addresses that are looked up, for each sample.
  static constexpr int kMaxFiles = 4;
  static constexpr int kMaxSearches = 8;
  // Limit of frames of memory that are mapped for one sample.
  static constexpr uint64_t kMaxMaps = 64;
  // Limit of pages that are looked at between two calls of Forget.
  static constexpr uint32_t kMaxPages = 1U << 16;
  // Limit of the distance of code to the begin of its file.
  static constexpr uint64_t kMaxDistance = uint64_t{256} << 20;
  // Limits of what is remembered.
  static constexpr size_t kMaxSpaces = 4096;
  static constexpr size_t kMaxFilesOfSpace = 64;
  static constexpr size_t kMaxPagesWithoutFile = 4096;  // of each space

  explicit GuestPrograms(MappedFrames& frames) : pages_(frames) {}

  // Looks for the files of the vCPU's address space that have code where the vCPU was, or where
  // `words` point, which may be any. What is new is added to `found`, as of `when`. Returns the
  // number of the address space; 0: none of its files is known. Without `search` it looks for no
  // files that are not known.
  uint16_t Find(DomainId domain, const VcpuContext& context, std::span<const uint64_t> words,
                Tsc when, bool search, recording::ProcessChunk& found);
  // Lets what is known be checked when it is next used: the guest may have given an address space
  // to another process.
  void Forget();

 private:
  struct File {
    Address header = 0;         // address of its ELF header
    Address build_id_at = 0;    // address of the build-id
    uint8_t build_id_size = 0;  // in bytes
    std::array<uint8_t, 20> build_id{};
    struct Code {
      Address begin = 0;
      Address end = 0;
      uint64_t offset = 0;  // in the file
    };
    std::vector<Code> code;
    [[nodiscard]] bool Has(Address address) const;
  };
  struct Space {
    uint16_t number = 0;
    uint64_t checked = 0;  // value of checks_ when its files were last seen to be there
    std::vector<File> files;
    absl::flat_hash_set<Address> without_file;  // pages
  };

  // What one sample may still cost.
  struct Budget {
    int searches = kMaxSearches;
    int files = kMaxFiles;
  };

  // Looks for the file that has code at the address.
  void FindAt(Address address, Tsc when, Space& space, Budget& budget,
              recording::ProcessChunk& found);
  static void AddTo(recording::ProcessChunk& found, const File& file, uint16_t space, Tsc when);
  // Returns whether none of the space's files is known to be gone.
  bool IsStillThere(const Space& space);
  // Sets `file` to the one with code at the address. False: none was found.
  bool Search(Address address, File& file);
  // Sets `file` to the one whose header is at the begin of the page. False: there is none.
  bool Read(Address page, File& file);
  // Sets the build-id of `file` to that among these notes. False: there is none.
  bool ReadBuildId(Address notes, uint64_t size, File& file);
  // Copies memory, whose address is a multiple of 4. False: a part is not present.
  bool Copy(Address from, std::span<std::byte> to);

  GuestPages pages_;
  uint32_t pages_left_ = kMaxPages;
  uint64_t checks_ = 1;
  uint16_t last_number_ = 0;
  absl::flat_hash_map<std::pair<uint16_t, uint64_t>, Space> spaces_;  // by domain and top table
};

}  // namespace xenoscope::sampler
