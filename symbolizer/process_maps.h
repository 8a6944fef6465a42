// The maps of a process, in the order in which they were made. A process shares its earlier maps
// with its children, so that memory grows with what is mapped, not with the number of processes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "base/mode.h"

namespace xenoscope::symbolizer {

// A mapped part of a file: the bytes from `offset` on lie at [begin, end).
struct ProcessMap {
  Address begin = 0;
  Address end = 0;
  uint64_t offset = 0;  // offset in the file, in bytes
  uint32_t file = 0;    // number of the file (ProcessImages::AddFile)
};

// The maps of one process.
class ProcessMaps {
 public:
  ProcessMaps() = default;
  ProcessMaps(std::initializer_list<ProcessMap> maps) : own_(maps) {}

  void Add(const ProcessMap& map) { own_.push_back(map); }
  // Returns what a child begins with: these maps. Later changes affect one of the two only. O(1).
  ProcessMaps Fork();

  // Returns the newest map that holds the address, valid until the next Add or Fork; null: none.
  // O(maps).
  [[nodiscard]] const ProcessMap* Find(Address address) const;
  // Returns the newest map with the lowest address, valid as long; null: there is none. O(maps).
  [[nodiscard]] const ProcessMap* Lowest() const;
  [[nodiscard]] bool empty() const { return own_.empty() && !before_; }

 private:
  // The maps of the time before a fork, which do not change any more. A chain of them may be long,
  // so it must not be followed by recursion.
  struct Shared {
    Shared(std::shared_ptr<Shared> earlier, std::vector<ProcessMap> added)
        : before(std::move(earlier)), maps(std::move(added)) {}
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;
    ~Shared();

    std::shared_ptr<Shared> before;  // maps of the time before an earlier fork
    std::vector<ProcessMap> maps;
  };

  std::shared_ptr<Shared> before_;
  std::vector<ProcessMap> own_;
};

}  // namespace xenoscope::symbolizer
