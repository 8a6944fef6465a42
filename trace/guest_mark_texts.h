// Joins the records of guests' marks to whole marks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/ids.h"
#include "base/tsc.h"
#include "trace/guest_mark.h"

namespace xenoscope::trace {

// A mark with its whole text.
struct WholeGuestMark {
  VcpuRef vcpu;  // that wrote the first record
  Tsc at;        // the time of the first record
  GuestMarkKind kind = GuestMarkKind::kInstant;
  std::string text;       // any bytes, at most 64
  bool complete = false;  // no record of it was lost
};

// Takes records in the order of time. Marks of a domain are told apart by their numbers, so that
// programs may write at once. Memory: kMaxOpen marks.
class GuestMarkTexts {
 public:
  static constexpr size_t kMaxOpen = 1024;
  using Receiver = std::function<void(const WholeGuestMark&)>;

  // `receiver` gets each mark once, when its last record has come, or when it is clear that it
  // does not come: another mark has the number, too many are open, or Finish was called.
  explicit GuestMarkTexts(Receiver receiver) : receiver_(std::move(receiver)) {}

  void Add(VcpuRef vcpu, Tsc at, const GuestMark& part);
  void Finish();

 private:
  struct Open {
    WholeGuestMark mark;
    uint32_t next_part = 0;
  };
  using Key = std::pair<DomainId, uint16_t>;

  void Close(std::map<Key, Open>::iterator open, bool complete);

  Receiver receiver_;
  std::map<Key, Open> open_;
};

}  // namespace xenoscope::trace
