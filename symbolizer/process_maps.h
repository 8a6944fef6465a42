// What a process maps, in the order in which it did. A process that forks has its maps in common
// with its children, so that memory grows with what is mapped, not with how many processes have it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "base/mode.h"

namespace xenoscope::symbolizer {

// The file's bytes from `offset` on lie at [begin, end).
struct ProcessMap {
  Address begin = 0;
  Address end = 0;
  uint64_t offset = 0;  // in the file, bytes
  uint32_t file = 0;    // as ProcessImages::AddFile numbered it
};

class ProcessMaps {
 public:
  ProcessMaps() = default;
  ProcessMaps(std::initializer_list<ProcessMap> maps) : own_(maps) {}

  void Add(const ProcessMap& map) { own_.push_back(map); }
  // What a child begins with: these maps. Each goes its own way from then on. O(1).
  ProcessMaps Fork();

  // The newest map that has the address; null: none. It is there until the next Add or Fork.
  // O(maps).
  const ProcessMap* Find(Address address) const;
  bool empty() const { return own_.empty() && !before_; }

 private:
  // Maps of the time before a fork, which nobody changes any more. A chain of them may be long: it
  // is not to be followed by recursion.
  struct Shared {
    Shared(std::shared_ptr<Shared> earlier, std::vector<ProcessMap> added)
        : before(std::move(earlier)), maps(std::move(added)) {}
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;
    ~Shared();

    std::shared_ptr<Shared> before;  // older ones
    std::vector<ProcessMap> maps;
  };

  std::shared_ptr<Shared> before_;
  std::vector<ProcessMap> own_;
};

}  // namespace xenoscope::symbolizer
