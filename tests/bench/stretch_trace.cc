// Makes a large trace from a small one: stretch_trace IN OUT MEGABYTES [COPIES]
// Repeats the windows of IN with their times moved on, so that each repetition begins where the one
// before ended, until OUT has that many megabytes (10^6 bytes). Records are otherwise unchanged.
// Prints how many repetitions there are, and how many cycles apart.
//
// With COPIES, OUT is the trace of a host with so many times the pCPUs: each window is written once
// for each copy. Each copy has pCPUs, domains and idle vCPUs of its own, and its times are moved on
// a little, so that the copies do not do the same at the same instant. Records that guests wrote
// themselves are left out, as xenalyze never ends on them. Prints then, too, how far apart the
// numbers of the copies' domains are, by how many cycles a copy is later than the one before, and
// the last time.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "trace/events.h"
#include "trace/fields.h"
#include "trace/probe.h"
#include "trace/record.h"
#include "trace/trace_file.h"

namespace xenoscope::trace {
namespace {

// The distance in time of two copies, in cycles.
constexpr uint64_t kCopyShift = 700'001;

struct Span {
  uint64_t first = UINT64_MAX;
  uint64_t last = 0;
};

// Calls visit(byte of the first word, first word) for every whole record of the window.
template <typename Byte, typename Visit>
void ForEachRecord(Byte* at, Byte* end, Visit visit) {
  while (end - at >= 4) {
    const FirstWord word{LoadUnchecked<uint32_t>(at)};
    if (end - at < static_cast<ptrdiff_t>(word.SizeBytes())) return;
    visit(at, word);
    at += word.SizeBytes();
  }
}

// Calls use(TSC) for every 64-bit time in the record, to read or to change it.
template <typename Byte, typename Use>
void ForEachTime(Byte* at, FirstWord word, Use use) {
  if (word.has_tsc() && word.id() != IdOf(Event::kTraceWrapBuffer)) use(at + 4);
  if (word.id() == IdOf(Event::kLostRecords) && word.SizeBytes() == 28) use(at + 20);
}

void Store(uint64_t value, std::byte* at, size_t bytes) { std::memcpy(at, &value, bytes); }

void MoveTimes(std::byte* at, FirstWord word, uint64_t cycles) {
  ForEachTime(at, word, [cycles](std::byte* tsc) {
    Store(LoadUnchecked<uint64_t>(tsc) + cycles, tsc, sizeof(uint64_t));
  });
}

// Changes the numbers of domains, idle vCPUs and pCPUs in records into those of a copy.
class Renumbering {
 public:
  Renumbering(const TraceFile& file, const Dialect& dialect) : dialect_(dialect) {
    for (const PcpuWindows& pcpu : file.index().pcpus) {
      pcpus_ = std::max(pcpus_, pcpu.pcpu.value + 1);
      for (const Window& window : pcpu.windows) {
        const std::byte* begin = file.bytes().data() + window.begin;
        ForEachRecord(begin, begin + (window.end - window.begin),
                      [this](const std::byte* at, FirstWord word) { NoteDomain(at, word); });
      }
    }
  }

  // Whether so many copies have numbers.
  [[nodiscard]] bool HasRoomFor(uint32_t copies) const {
    return uint64_t{domains_} * copies < kFirstReservedDomain.value &&
           uint64_t{pcpus_} * copies < kMaxPcpus;
  }
  // The distance of the numbers of two copies' domains.
  [[nodiscard]] uint32_t domains() const { return domains_; }
  [[nodiscard]] uint32_t PcpuOf(uint32_t pcpu, uint32_t copy) const { return pcpu + copy * pcpus_; }

  void Apply(std::byte* at, FirstWord word, uint32_t copy) const {
    const Record record = RecordOf(at, word);
    const Variant* variant = FindVariant(record, dialect_);
    if (record.event == Event::kUnknown || variant == nullptr) return;
    uint32_t bit = 0;
    for (uint8_t i = 0; i < variant->field_count; ++i) {
      const FieldSpec& spec = variant->fields[i];
      if (!InPayload(spec.type)) continue;
      if (bit / 32 >= word.words()) break;  // some variants' last fields may be missing
      Renumber(spec, at + word.PayloadOffset() + bit / 32 * 4, bit % 32, copy);
      bit += fields_internal::Width(spec, record.id);
    }
  }

 private:
  static Record RecordOf(const std::byte* at, FirstWord word) {
    Record record;
    record.id = word.id();
    record.event = Classify(record.id);
    record.words = static_cast<uint8_t>(word.words());
    record.payload = Payload(at + word.PayloadOffset(), record.words);
    return record;
  }
  static bool InPayload(FieldType type) {
    return type != FieldType::kRunstates && type != FieldType::kNested &&
           type != FieldType::kGuestEvent;
  }
  void NoteDomain(const std::byte* at, FirstWord word) {
    const Record record = RecordOf(at, word);
    if (record.event == Event::kRunstateChange && record.words > 0) {
      const DomainId domain = UnpackVcpu(record.payload.Word(0)).domain;
      if (domain < kFirstReservedDomain) domains_ = std::max(domains_, domain.value + 1U);
    }
  }
  [[nodiscard]] VcpuRef CopyOf(VcpuRef vcpu, uint32_t copy) const {
    if (IsIdle(vcpu)) return {vcpu.domain, VcpuId{PcpuOf(vcpu.vcpu.value, copy)}};
    return {DomainId{static_cast<uint16_t>(CopyOf(vcpu.domain.value, copy))}, vcpu.vcpu};
  }
  [[nodiscard]] uint32_t CopyOf(uint32_t domain, uint32_t copy) const {
    return domain < domains_ ? domain + copy * domains_ : domain;
  }
  // Changes the field that begins at the bit of the word at `word`.
  void Renumber(const FieldSpec& spec, std::byte* word, uint32_t bit, uint32_t copy) const {
    const auto value = LoadUnchecked<uint32_t>(word);
    switch (spec.type) {
      case FieldType::kVcpuDomain: {
        const VcpuRef vcpu = CopyOf(UnpackVcpu(value), copy);
        return Store(uint32_t{vcpu.domain.value} << 16 | vcpu.vcpu.value, word, 4);
      }
      case FieldType::kDomainVcpu: {
        const VcpuRef vcpu = CopyOf(UnpackDomainFirst(value), copy);
        return Store(vcpu.vcpu.value << 16 | vcpu.domain.value, word, 4);
      }
      case FieldType::kDomainVcpu2: {
        const VcpuRef vcpu = CopyOf(
            {DomainId{static_cast<uint16_t>(value)}, VcpuId{LoadUnchecked<uint32_t>(word + 4)}},
            copy);
        Store(vcpu.domain.value, word, 4);
        return Store(vcpu.vcpu.value, word + 4, 4);
      }
      case FieldType::kDomain:
        return StorePart(value, CopyOf(Part(value, bit, spec.bits), copy), word, bit, spec.bits);
      case FieldType::kUnsigned:
      case FieldType::kOptional:
        if (!spec.name.ends_with("cpu") || Part(value, bit, spec.bits) >= pcpus_) return;
        return StorePart(value, PcpuOf(Part(value, bit, spec.bits), copy), word, bit, spec.bits);
      default:
        return;
    }
  }
  static uint32_t Mask(uint32_t bits) { return bits == 32 ? ~0U : (1U << bits) - 1; }
  static uint32_t Part(uint32_t value, uint32_t bit, uint32_t bits) {
    return value >> bit & Mask(bits);
  }
  static void StorePart(uint32_t value, uint32_t part, std::byte* word, uint32_t bit,
                        uint32_t bits) {
    Store((value & ~(Mask(bits) << bit)) | (part & Mask(bits)) << bit, word, 4);
  }

  Dialect dialect_;
  uint32_t domains_ = 0;  // above all numbers of domains that run in the trace
  uint32_t pcpus_ = 0;    // above all numbers of pCPUs
};

// A window and the pCPU of its records.
struct PcpuWindow {
  Window window;
  uint32_t pcpu;
};

std::vector<PcpuWindow> WindowsByOffset(const TraceFile& file) {
  std::vector<PcpuWindow> windows;
  for (const PcpuWindows& pcpu : file.index().pcpus) {
    for (const Window& window : pcpu.windows) windows.push_back({window, pcpu.pcpu.value});
  }
  std::sort(windows.begin(), windows.end(), [](const PcpuWindow& a, const PcpuWindow& b) {
    return a.window.begin < b.window.begin;
  });
  return windows;
}

class Stretcher {
 public:
  // Writes one trace, or that of `copies` hosts in one.
  Stretcher(const TraceFile& file, std::optional<uint32_t> copies)
      : file_(file), windows_(WindowsByOffset(file)), copies_(copies.value_or(1)) {
    if (copies) renumbering_.emplace(file, ProbeTrace(file).dialect);
    Span span;
    for (const PcpuWindow& each : windows_) {
      ForEachRecord(At(each.window.begin), At(each.window.end),
                    [&](const std::byte* at, FirstWord word) {
                      ForEachTime(at, word, [&](const std::byte* time) {
                        const auto tsc = LoadUnchecked<uint64_t>(time);
                        span.first = std::min(span.first, tsc);
                        span.last = std::max(span.last, tsc);
                      });
                    });
    }
    step_ = span.last - span.first + 1;
  }

  [[nodiscard]] bool HasRoom() const { return !renumbering_ || renumbering_->HasRoomFor(copies_); }

  // Writes until the file has so many bytes; returns whether all were written. Nothing has been
  // written to `to`, and it is closed before this ends. It gets large blocks: the page cache then
  // keeps the trace in large pieces, as one that is read from a disk. To map many small ones takes
  // long in virtual machines.
  bool Write(std::FILE* to, uint64_t bytes) {
    std::setvbuf(to, block_.data(), _IOFBF, block_.size());
    uint64_t repetitions = 0;
    for (uint64_t written = 0; written < bytes; ++repetitions) {
      for (const PcpuWindow& each : windows_) {
        // A trace of many pCPUs ends with a whole round of windows.
        if (renumbering_ && written >= bytes) break;
        for (uint32_t copy = 0; copy < copies_; ++copy) {
          const size_t size = Copy(each, copy, repetitions * step_ + copy * kCopyShift);
          if (std::fwrite(copy_.data(), 1, size, to) != size) return false;
          written += size;
        }
      }
    }
    fmt::print("{} {}", repetitions, step_);
    if (renumbering_) fmt::print(" {} {} {}", renumbering_->domains(), kCopyShift, last_);
    fmt::print("\n");
    return true;
  }

 private:
  [[nodiscard]] const std::byte* At(uint64_t offset) const { return file_.bytes().data() + offset; }

  // Puts a window with its header into copy_, its times moved on; returns its bytes.
  size_t Copy(const PcpuWindow& each, uint32_t copy, uint64_t cycles) {
    const std::byte* begin = At(each.window.begin);
    const std::byte* end = At(each.window.end);
    copy_.assign(begin - kWindowHeaderBytes, end);
    std::byte* to = copy_.data() + kWindowHeaderBytes;
    const std::byte* taken = begin;
    ForEachRecord(begin, end, [&](const std::byte* at, FirstWord word) {
      taken = at + word.SizeBytes();
      if (renumbering_ && Info(Classify(word.id())).subclass == TraceSubclass::kGuest) return;
      std::memmove(to, at, word.SizeBytes());
      MoveTimes(to, word, cycles);
      ForEachTime(to, word, [this](const std::byte* time) {
        last_ = std::max(last_, LoadUnchecked<uint64_t>(time));
      });
      if (renumbering_) renumbering_->Apply(to, word, copy);
      to += word.SizeBytes();
    });
    std::memmove(to, taken, static_cast<size_t>(end - taken));
    to += end - taken;
    const auto size = static_cast<size_t>(to - copy_.data());
    if (renumbering_) {
      Store(renumbering_->PcpuOf(each.pcpu, copy), copy_.data() + 4, 4);
      Store(size - kWindowHeaderBytes, copy_.data() + 8, 4);
    }
    return size;
  }

  const TraceFile& file_;
  std::vector<PcpuWindow> windows_;
  uint32_t copies_;
  std::optional<Renumbering> renumbering_;
  uint64_t step_ = 0;
  uint64_t last_ = 0;  // of the times that were written
  std::vector<std::byte> copy_;
  std::vector<char> block_ = std::vector<char>(size_t{4} << 20);
};

int Stretch(const char* in, const char* out, uint64_t bytes, std::optional<uint32_t> copies) {
  const auto file = TraceFile::Open(in);
  if (!file.ok()) {
    fmt::print(stderr, "stretch_trace: {}\n", Message(file.status()));
    return 1;
  }
  Stretcher stretcher(*file, copies);
  if (!stretcher.HasRoom()) {
    fmt::print(stderr, "stretch_trace: {} copies need more domains or pCPUs than Xen has\n",
               *copies);
    return 1;
  }
  std::FILE* to = std::fopen(out, "wb");
  if (to == nullptr) {
    std::perror(out);
    return 1;
  }
  const bool complete = stretcher.Write(to, bytes);
  if (std::fclose(to) == 0 && complete) return 0;
  std::perror(out);
  return 1;
}

// Returns the number that the text is, if it is one above 0.
template <typename Number>
std::optional<Number> Parse(std::string_view text) {
  Number number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size() || number == 0) return {};
  return number;
}

}  // namespace
}  // namespace xenoscope::trace

int main(int argc, char** argv) {
  using xenoscope::trace::Parse;
  const auto megabytes = Parse<uint64_t>(argc >= 4 ? argv[3] : "");
  const auto copies = Parse<uint32_t>(argc == 5 ? argv[4] : "");
  if (!megabytes || argc > 5 || (argc == 5 && !copies)) {
    fmt::print(stderr,
               "usage: stretch_trace IN OUT MEGABYTES [COPIES]\n"
               "example: stretch_trace trace.bin long.bin 600\n"
               "example: stretch_trace trace.bin wide.bin 600 128\n");
    return 2;
  }
  return xenoscope::trace::Stretch(argv[1], argv[2], *megabytes * 1'000'000, copies);
}
