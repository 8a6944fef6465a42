#include "trace/guest_mark_texts.h"

#include <algorithm>

namespace xenoscope::trace {

void GuestMarkTexts::Add(VcpuRef vcpu, Tsc at, const GuestMark& part) {
  const Key key(vcpu.domain, part.number);
  auto open = open_.find(key);
  if (open != open_.end() &&
      (open->second.next_part != part.part || open->second.mark.kind != part.kind)) {
    Close(open, false);
    open = open_.end();
  }
  if (open == open_.end()) {
    if (open_.size() >= kMaxOpen) {
      Close(
          std::ranges::min_element(open_, {}, [](const auto& each) { return each.second.mark.at; }),
          false);
    }
    open = open_.try_emplace(key).first;
    const bool has_begin = part.part == 0;
    open->second.mark = {
        .vcpu = vcpu, .at = at, .kind = part.kind, .text = {}, .complete = has_begin};
  }
  open->second.mark.text += part.text;
  open->second.next_part = part.part + 1U;
  if (!part.continues) Close(open, true);
}

void GuestMarkTexts::Close(std::map<Key, Open>::iterator open, bool complete) {
  WholeGuestMark mark = std::move(open->second.mark);
  mark.complete = mark.complete && complete;
  open_.erase(open);
  receiver_(mark);
}

void GuestMarkTexts::Finish() {
  while (!open_.empty()) Close(open_.begin(), false);
}

}  // namespace xenoscope::trace
