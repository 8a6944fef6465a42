#include "trace/cursor.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace xenoscope::trace {
namespace {

// A jump from here on (about half an hour) is not believed if no later TSC confirms it.
constexpr Cycles kMaxTscJump = Cycles{1} << 42;
// The largest TSC that is believed (14 years at 5 GHz), far enough from overflow for all
// arithmetic.
constexpr Tsc kMaxTsc{uint64_t{1} << 61};
// The number of later TSCs that decide whether one is right, and of records that are read for them.
constexpr int kConfirmingTscs = 3;
constexpr int kLookAhead = 32;
// The number of TSCs among which the first one must be credible.
constexpr size_t kFirstTscs = 7;

constexpr uint32_t kLostRecordsId = IdOf(Event::kLostRecords);
constexpr uint32_t kPaddingId = IdOf(Event::kTraceWrapBuffer);

// Whether the number has exactly one class bit of TRC_GEN .. TRC_GUEST
// (xen/include/public/trace.h, 4.17).
bool IsClass(uint32_t id) {
  const uint32_t trace_class = id >> 16;
  return std::has_single_bit(trace_class) && (trace_class & 0x08ffU) != 0;
}

// Whether the first word of the event is the vCPU that runs or changes its state.
bool NamesVcpu(Event event) {
  return event == Event::kRunstateChange || event == Event::kContinueRunning;
}

// Whether the event is never common, whatever its size.
bool IsSpecial(Event event) {
  return event == Event::kUnknown || event == Event::kLostRecords ||
         event == Event::kTraceWrapBuffer || event == Event::kTraceCpuChange;
}

std::array<uint8_t, kEventCount> CommonWords() {
  std::array<uint8_t, kEventCount> common{};
  for (size_t i = 0; i < kEventCount; ++i) {
    const auto event = static_cast<Event>(i);
    if (IsSpecial(event)) continue;
    const EventInfo& info = Info(event);
    for (unsigned words = info.min_words; words <= info.max_words; ++words) {
      common[i] = static_cast<uint8_t>(common[i] | 1U << words);
    }
  }
  return common;
}

// By event: bit n is set when a record of n extra words is proper and changes nothing in the
// cursor.
const std::array<uint8_t, kEventCount> kCommonWords = CommonWords();

}  // namespace

void HeadCache::AddTo(PcpuVolume& volume, const Counts& counts) const {
  volume.Add(counts.volume);
  for (const Entry& entry : entries_) {
    const uint64_t records = entry.size == 0 ? 0 : counts.by_head[entry.number];
    volume.known[static_cast<size_t>(entry.head.event)].Add(
        RecordCount{records, records * entry.size});
  }
}

void HeadCache::Clear() {
  entries_.fill({});
  // A free entry must not look like that of a word whose place it is.
  entries_[Place(0)].word = 1;
  known_ = 0;
}

void HeadCache::Forget() {
  for (const auto& counts : counts_) {
    PcpuVolume all;
    AddTo(all, *counts);
    counts->volume = all;
    counts->by_head.fill(0);
  }
  Clear();
}

const HeadCache::Entry* HeadCache::Look(uint32_t word) {
  Entry* known = &Find(word);
  if (known->size != 0) return known;
  const FirstWord header{word};
  const Event event = Classify(header.id());
  if ((kCommonWords[static_cast<size_t>(event)] >> header.words() & 1) == 0) return nullptr;
  if (known_ == kMaxHeads) {
    Forget();
    known = &Find(word);
  }
  *known = {.word = word,
            .size = static_cast<uint8_t>(header.SizeBytes()),
            .names_running_vcpu = NamesVcpu(event),
            .crosses = Crosses(event),
            .number = static_cast<uint8_t>(known_++),
            .head = {header.id(), event, header.has_tsc(), static_cast<uint8_t>(header.words())}};
  return known;
}

// MAX_VIRT_CPUS (xen/include/asm-x86/config.h, 4.17), and an idle vCPU a pCPU.
bool Cursor::CanExist(VcpuRef vcpu) {
  constexpr uint32_t kMaxVcpus = 8192;
  if (IsIdle(vcpu)) return vcpu.vcpu.value < kMaxPcpus;
  return vcpu.domain < kFirstReservedDomain && vcpu.vcpu.value < kMaxVcpus;
}

Cursor::Cursor(Bytes file, const PcpuWindows& windows, HeadCache& heads, size_t first_window)
    : file_(file.data()),
      windows_(&windows),
      pcpu_(windows.pcpu),
      tsc_offset_(static_cast<uint64_t>(windows.tsc_offset)),
      window_(first_window),
      heads_(&heads),
      counts_(&heads.AddCounts()),
      has_pending_(first_window == 0) {
  if (first_window < windows.windows.size()) {
    pos_ = windows.windows[first_window].begin;
    end_ = windows.windows[first_window].end;
  }
  last_tsc_ = next_tsc_ = FirstTsc().value_or(Tsc{});
  pending_.kind = ItemKind::kPcpuBegin;
  pending_.record.pcpu = pcpu_;
  pending_.record.tsc = last_tsc_;
  pending_.record.offset = pos_;
}

// Returns the first TSC, unless those after it lie together and far from it. A trace that begins
// with a loss begins where the loss does.
std::optional<Tsc> Cursor::FirstTsc() const {
  std::vector<Tsc> tscs;  // in the order of the file
  std::optional<Tsc> first_lost;
  for (size_t i = window_; i < windows_->windows.size() && tscs.size() < kFirstTscs; ++i) {
    const Window& window = windows_->windows[i];
    for (uint64_t at = window.begin; at + 4 <= window.end && tscs.size() < kFirstTscs;) {
      const FirstWord header{LoadUnchecked<uint32_t>(file_ + at)};
      if (header.SizeBytes() > window.end - at) break;
      if (!IsClass(header.id())) {
        at += 4;
        continue;
      }
      if (header.has_tsc() && header.id() != kPaddingId) {
        if (tscs.empty() && header.id() == kLostRecordsId && header.words() == 4) {
          first_lost = LoadTsc(file_ + at + 20);
        }
        tscs.push_back(LoadTsc(file_ + at + 4));
      }
      at += header.SizeBytes();
    }
  }
  if (tscs.empty()) return std::nullopt;
  std::vector<Tsc> sorted = tscs;
  std::sort(sorted.begin(), sorted.end());
  const Tsc middle = sorted[sorted.size() / 2];
  const bool together = sorted.size() > 3 && sorted.back() - middle < kMaxTscJump;
  const Tsc first = *std::find_if(tscs.begin(), tscs.end(), [&](Tsc tsc) {
    return tsc <= middle && !(together && middle - tsc >= kMaxTscJump);
  });
  if (first > kMaxTsc) return std::nullopt;
  const bool begins_lost =
      first_lost && first == tscs[0] && *first_lost <= first && first - *first_lost < kMaxTscJump;
  return begins_lost ? *first_lost : first;
}

bool Cursor::NextWindow() {
  while (++window_ < windows_->windows.size()) {
    pos_ = windows_->windows[window_].begin;
    end_ = windows_->windows[window_].end;
    if (pos_ < end_) return true;
  }
  return false;
}

void Cursor::CountPending() {
  const Record& record = pending_.record;
  switch (pending_.kind) {
    case ItemKind::kRecord:
    case ItemKind::kWrap:
    case ItemKind::kLost:
      counts_->volume.known[static_cast<size_t>(record.event)].Add(record.SizeBytes());
      break;
    case ItemKind::kUnknownEvent:
    case ItemKind::kMalformed:
      counts_->volume.other[static_cast<size_t>(SubclassOf(record.id))].Add(record.SizeBytes());
      break;
    default:
      break;
  }
}

void Cursor::AddTaken(PcpuVolume& volume) const { heads_->AddTo(volume, *counts_); }

uint64_t Cursor::BytesTo(const Cursor& later) const {
  if (window_ == later.window_) return later.pos_ - pos_;
  uint64_t bytes = end_ - pos_;
  for (size_t i = window_ + 1; i < later.window_ && i < windows_->windows.size(); ++i) {
    bytes += windows_->windows[i].end - windows_->windows[i].begin;
  }
  if (later.window_ < windows_->windows.size()) {
    bytes += later.pos_ - windows_->windows[later.window_].begin;
  }
  return bytes;
}

void Cursor::SaveState(StateSnapshot& out) const {
  out.Add(pcpu_, window_, pos_, last_tsc_, has_pending_, tsc_damage_reported_, loss_begin_reported_,
          ended_, done_);
  if (has_pending_ && !done_) out.Add(pending_.kind, pending_.record.offset, next_tsc_);
}

void Cursor::Prepare() {
  has_pending_ = true;
  pending_.current = current_;
  pending_.record.pcpu = pcpu_;
  if (pos_ == end_ && (window_ >= windows_->windows.size() || !NextWindow())) {
    pending_.kind = ItemKind::kPcpuEnd;
    pending_.record.payload = {};
    pending_.record.tsc = last_tsc_;
    ended_ = true;
  } else {
    PrepareRecord();
  }
  next_tsc_ = pending_.record.tsc;
}

void Cursor::SetDamage(DamageKind kind, uint64_t bytes) {
  pending_.kind = ItemKind::kDamaged;
  pending_.damage = {kind, pos_, bytes};
  pending_.record.tsc = last_tsc_;
  pending_.record.offset = pos_;
  pending_.record.payload = {};
}

void Cursor::SetRecord(FirstWord header) {
  Record& record = pending_.record;
  record.tsc = last_tsc_;
  record.offset = pos_;
  record.id = header.id();
  record.event = Classify(header.id());
  record.has_tsc = header.has_tsc();
  record.words = static_cast<uint8_t>(header.words());
  record.payload = Payload(file_ + pos_ + header.PayloadOffset(), header.words());
}

void Cursor::PrepareRecord() {
  if (end_ - pos_ < 4) {
    SetDamage(DamageKind::kStraddle, end_ - pos_);
    pos_ = end_;
    return;
  }
  const FirstWord header{LoadUnchecked<uint32_t>(file_ + pos_)};
  if (header.SizeBytes() > end_ - pos_) return Resynchronise(DamageKind::kStraddle);
  if (header.id() == kPaddingId) {  // padding: its TSC, if it has one, is whatever was in the ring
    SetRecord(header);
    pending_.kind = ItemKind::kWrap;
    pos_ += header.SizeBytes();
    return;
  }
  const Event event = Classify(header.id());
  const EventInfo& info = Info(event);
  bool proper = event != Event::kUnknown && header.words() >= info.min_words &&
                header.words() <= info.max_words;
  if (proper && NamesVcpu(event)) {
    const std::byte* words = file_ + pos_ + header.PayloadOffset();
    proper = CanExist(UnpackVcpu(LoadUnchecked<uint32_t>(words)));
  }
  if (!proper) [[unlikely]] {
    if (!IsClass(header.id()) || header.id() == IdOf(Event::kTraceCpuChange) ||
        !EndsPlausibly(pos_ + header.SizeBytes())) {
      return Resynchronise(DamageKind::kNotARecord);
    }
  }
  if (header.has_tsc()) {
    const Tsc tsc = LoadTsc(file_ + pos_ + 4);
    if (TscIsWrong(tsc, header)) [[unlikely]] {
      if (!tsc_damage_reported_) {
        SetDamage(DamageKind::kTscOutOfOrder, 0);
        tsc_damage_reported_ = true;
        return;
      }
    } else {
      if (proper && event == Event::kLostRecords && !loss_begin_reported_) [[unlikely]] {
        return PrepareLoss(header);
      }
      last_tsc_ = tsc;
    }
    tsc_damage_reported_ = false;
  }
  SetRecord(header);
  pos_ += header.SizeBytes();
  if (!proper) [[unlikely]] {
    pending_.kind = event == Event::kUnknown ? ItemKind::kUnknownEvent : ItemKind::kMalformed;
    return;
  }
  pending_.kind = ItemKind::kRecord;
  if (event == Event::kLostRecords) [[unlikely]] {
    pending_.kind = ItemKind::kLost;
    loss_begin_reported_ = false;
  }
  pending_.current = UpdateCurrent(pending_.record);
}

// Prepares the kLossBegin before a TRC_LOST_RECORDS {u32 lost; u16 dom; u16 vcpu; u64 first_tsc}.
void Cursor::PrepareLoss(FirstWord header) {
  SetRecord(header);
  const Tsc resumed = LoadTsc(file_ + pos_ + 4);
  pending_.kind = ItemKind::kLossBegin;
  pending_.lost = pending_.record.payload.Word(0);
  pending_.first_lost = std::clamp(LoadTsc(file_ + pos_ + 20), last_tsc_, resumed);
  pending_.record.tsc = pending_.first_lost;
  last_tsc_ = pending_.first_lost;
  loss_begin_reported_ = true;
  current_.reset();
}

std::optional<VcpuRef> Cursor::UpdateCurrent(const Record& record) {
  std::optional<VcpuRef> ran = current_;
  switch (record.event) {
    case Event::kRunstateChange:
      if (RunstateNew(record.id) == Runstate::kRunning) {
        current_ = ran = UnpackVcpu(record.payload.Word(0));
      } else if (RunstateOld(record.id) == Runstate::kRunning) {
        ran = UnpackVcpu(record.payload.Word(0));
        current_.reset();
      }
      break;
    case Event::kContinueRunning:
      current_ = ran = UnpackVcpu(record.payload.Word(0));
      break;
    case Event::kLostRecords: {
      const VcpuRef vcpu = UnpackDomainFirst(record.payload.Word(1));
      if (CanExist(vcpu)) current_ = ran = vcpu;
      break;
    }
    default:
      break;
  }
  return ran;
}

bool Cursor::TscIsWrong(Tsc tsc, FirstWord header) const {
  if (tsc >= last_tsc_ && tsc - last_tsc_ < kSuspiciousTscJump) [[likely]] {
    return false;
  }
  return tsc < last_tsc_ || tsc > kMaxTsc || !TscJumpIsConfirmed(tsc, pos_ + header.SizeBytes());
}

// Returns whether the TSCs of a few records from `at` on confirm the jump to `tsc`.
bool Cursor::TscJumpIsConfirmed(Tsc tsc, uint64_t at) const {
  uint64_t end = end_;
  size_t window = window_;
  int later = 0;
  int earlier = 0;
  for (int i = 0; i < kLookAhead && later + earlier < kConfirmingTscs; ++i) {
    if (at == end) {
      if (++window >= windows_->windows.size()) break;
      at = windows_->windows[window].begin;
      end = windows_->windows[window].end;
    }
    if (end - at < 4) break;
    const FirstWord header{LoadUnchecked<uint32_t>(file_ + at)};
    if (!IsClass(header.id()) || header.SizeBytes() > end - at) break;
    if (header.has_tsc() && header.id() != kPaddingId) {
      const Tsc confirming_tsc = LoadTsc(file_ + at + 4);
      if (confirming_tsc >= tsc && confirming_tsc <= kMaxTsc) ++later;
      if (confirming_tsc < tsc && confirming_tsc >= last_tsc_) ++earlier;
    }
    at += header.SizeBytes();
  }
  if (later + earlier == 0) return tsc - last_tsc_ < kMaxTscJump;
  return later >= earlier;
}

bool Cursor::EndsPlausibly(uint64_t at) const {
  if (at == end_) return true;
  if (end_ - at < 4) return false;
  const FirstWord next{LoadUnchecked<uint32_t>(file_ + at)};
  return IsClass(next.id()) && next.SizeBytes() <= end_ - at;
}

bool Cursor::Plausible(uint64_t at) const {
  const FirstWord header{LoadUnchecked<uint32_t>(file_ + at)};
  if (header.SizeBytes() > end_ - at) return false;
  const Event event = Classify(header.id());
  if (event == Event::kUnknown) return false;
  const EventInfo& info = Info(event);
  if (header.words() < info.min_words || header.words() > info.max_words) return false;
  if (header.has_tsc() != info.has_tsc) return false;
  if (NamesVcpu(event) &&
      !CanExist(UnpackVcpu(LoadUnchecked<uint32_t>(file_ + at + header.PayloadOffset())))) {
    return false;
  }
  if (header.has_tsc() && LoadTsc(file_ + at + 4) < last_tsc_) return false;
  return EndsPlausibly(at + header.SizeBytes());
}

void Cursor::Resynchronise(DamageKind kind) {
  uint64_t at = pos_ + 4;
  while (end_ - at >= 4 && at < end_ && !Plausible(at)) at += 4;
  if (at > end_ || end_ - at < 4) at = end_;
  SetDamage(kind, at - pos_);
  pos_ = at;
}

const char* ToString(DamageKind kind) {
  switch (kind) {
    case DamageKind::kNone:
      return "none";
    case DamageKind::kTruncated:
      return "the file ends here, inside a window";
    case DamageKind::kNoWindow:
      return "no window header where one must be";
    case DamageKind::kStraddle:
      return "a record would reach past its window";
    case DamageKind::kNotARecord:
      return "not a trace record";
    case DamageKind::kTscOutOfOrder:
      return "a TSC that contradicts its neighbours; the record is kept at the time before it";
  }
  return "?";
}

}  // namespace xenoscope::trace
