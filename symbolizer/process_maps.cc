#include "symbolizer/process_maps.h"

#include <algorithm>
#include <utility>

namespace xenoscope::symbolizer {
namespace {

const ProcessMap* FindIn(const std::vector<ProcessMap>& maps, Address address) {
  const auto found =
      std::find_if(maps.rbegin(), maps.rend(), [address](const ProcessMap& candidate) {
        return candidate.begin <= address && address < candidate.end;
      });
  return found == maps.rend() ? nullptr : &*found;
}

}  // namespace

ProcessMaps ProcessMaps::Fork() {
  if (!own_.empty()) {
    own_.shrink_to_fit();
    before_ = std::make_shared<Shared>(std::move(before_), std::exchange(own_, {}));
  }
  ProcessMaps child;
  child.before_ = before_;
  return child;
}

const ProcessMap* ProcessMaps::Find(Address address) const {
  if (const ProcessMap* found = FindIn(own_, address)) return found;
  for (const Shared* shared = before_.get(); shared != nullptr; shared = shared->before.get()) {
    if (const ProcessMap* found = FindIn(shared->maps, address)) return found;
  }
  return nullptr;
}

const ProcessMap* ProcessMaps::Lowest() const {
  const ProcessMap* lowest = nullptr;
  const auto look = [&lowest](const std::vector<ProcessMap>& maps) {
    for (const ProcessMap& map : maps) {
      if (lowest == nullptr || map.begin < lowest->begin) lowest = &map;
    }
  };
  look(own_);
  for (const Shared* shared = before_.get(); shared != nullptr; shared = shared->before.get()) {
    look(shared->maps);
  }
  return lowest;
}

ProcessMaps::Shared::~Shared() {
  std::shared_ptr<Shared> next = std::move(before);
  while (next && next.use_count() == 1) next = std::shared_ptr<Shared>(std::move(next->before));
}

}  // namespace xenoscope::symbolizer
