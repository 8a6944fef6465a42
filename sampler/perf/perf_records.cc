#include "sampler/perf/perf_records.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace xenoscope::sampler {
namespace {

// A reader of a record's fields. When bytes are missing, all further fields are 0 and good() is
// false.
class Fields {
 public:
  explicit Fields(Bytes bytes) : bytes_(bytes) {}

  template <typename T>
  T Next() {
    const auto value = Load<T>(bytes_, 0);
    short_ = short_ || !value;
    if (short_) return T{};
    bytes_ = bytes_.subspan(sizeof(T));
    return *value;
  }
  Bytes NextBytes(uint64_t size) {
    const auto value = Slice(bytes_, 0, size);
    short_ = short_ || !value;
    if (short_) return {};
    bytes_ = bytes_.subspan(size);
    return *value;
  }
  // Returns the rest as a text that ends with a zero and is padded with zeros.
  std::string_view Text() const {
    const std::string_view text = AsText(bytes_);
    return text.substr(0, text.find('\0'));
  }
  bool Short() const { return short_; }

 private:
  Bytes bytes_;
  bool short_ = false;
};

// Size of what sample_id_all appends to every record that is no sample, by kPerfSampleType: pid,
// tid, time, cpu, identifier.
constexpr size_t kTrailer = 32;
constexpr size_t kTimeInTrailer = 8;

Mode ModeOf(uint16_t misc) {
  switch (misc & PERF_RECORD_MISC_CPUMODE_MASK) {
    case PERF_RECORD_MISC_USER:
    case PERF_RECORD_MISC_GUEST_USER:
      return Mode::kUser;
    case PERF_RECORD_MISC_HYPERVISOR:
      return Mode::kXen;
    default:
      return Mode::kKernel;
  }
}

// The DWARF numbers of the registers of kPerfUserRegisters, in the order of their bits.
constexpr std::array<uint8_t, kUserRegisters> kDwarfNumbers = {0, 3, 2,  1,  4,  5,  6,  7, 16,
                                                               8, 9, 10, 11, 12, 13, 14, 15};

// Reads registers and stack of user mode.
void ReadUserState(Fields& body, PerfSample& sample) {
  const auto abi = body.Next<uint64_t>();
  sample.has_user_mode = abi != PERF_SAMPLE_REGS_ABI_NONE;
  UserRegisters registers{};
  for (size_t i = 0; sample.has_user_mode && i < registers.size(); ++i) {
    registers.at(kDwarfNumbers.at(i)) = body.Next<uint64_t>();
  }
  if (abi == PERF_SAMPLE_REGS_ABI_64) sample.registers = registers;
  const auto size = body.Next<uint64_t>();
  if (size == 0) return;
  sample.stack = body.NextBytes(size);
  // The kernel always gives `size` bytes; so many of them are the stack's.
  const auto filled = body.Next<uint64_t>();
  sample.stack = sample.stack.first(std::min<uint64_t>(sample.stack.size(), filled));
}

PerfRecord ReadSample(Fields body, uint16_t misc, PerfSampleParts parts) {
  PerfSample sample;
  sample.mode = ModeOf(misc);
  const auto cpu_mode = misc & PERF_RECORD_MISC_CPUMODE_MASK;
  sample.of_guest =
      cpu_mode == PERF_RECORD_MISC_GUEST_USER || cpu_mode == PERF_RECORD_MISC_GUEST_KERNEL;
  sample.id = body.Next<uint64_t>();
  sample.address = body.Next<uint64_t>();
  sample.pid = body.Next<uint32_t>();
  sample.tid = body.Next<uint32_t>();
  sample.time = body.Next<uint64_t>();
  sample.cpu = body.Next<uint32_t>();
  body.Next<uint32_t>();
  sample.period = body.Next<uint64_t>();
  if (parts.chain) {
    const auto count = body.Next<uint64_t>();
    if (count > UINT16_MAX) return PerfInvalid{};
    sample.chain = body.NextBytes(count * sizeof(uint64_t));
  }
  if (parts.branches) {
    const auto count = body.Next<uint64_t>();
    if (count > UINT16_MAX) return PerfInvalid{};
    sample.branches = body.NextBytes(count * kBranchBytes);
  }
  if (parts.stack) ReadUserState(body, sample);
  if (body.Short()) return PerfInvalid{};
  return sample;
}

// Two numbers of the device, 4 bytes each, come before that of the file.
constexpr size_t kInodeInIdentity = 8;

PerfRecord ReadMap(Fields body, uint16_t misc, uint64_t time) {
  PerfMap map;
  map.pid = body.Next<uint32_t>();
  map.tid = body.Next<uint32_t>();
  map.address = body.Next<uint64_t>();
  map.length = body.Next<uint64_t>();
  map.offset = body.Next<uint64_t>();
  const Bytes identity = body.NextBytes(24);  // a build-id, or device and inode
  body.NextBytes(8);                          // protection, flags
  map.path = body.Text();
  map.time = time;
  if (body.Short()) return PerfInvalid{};
  if ((misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0) {
    const auto size = std::to_integer<uint8_t>(identity[0]);
    if (size > 20) return PerfInvalid{};
    map.build_id = identity.subspan(4, size);
  } else {
    map.inode = LoadUnchecked<uint64_t>(identity.data() + kInodeInIdentity);
  }
  return map;
}

}  // namespace

PerfRecord ReadPerfRecord(Bytes record, PerfSampleParts parts) {
  const auto header = Load<perf_event_header>(record, 0);
  if (!header || header->size > record.size()) return PerfInvalid{};
  const Bytes body = record.subspan(sizeof *header, header->size - sizeof *header);
  if (header->type == PERF_RECORD_SAMPLE) return ReadSample(Fields(body), header->misc, parts);
  if (body.size() < kTrailer) return PerfInvalid{};
  Fields fields(body.first(body.size() - kTrailer));
  const auto time = LoadUnchecked<uint64_t>(body.data() + body.size() - kTrailer + kTimeInTrailer);
  switch (header->type) {
    case PERF_RECORD_COMM: {
      PerfName name;
      name.pid = fields.Next<uint32_t>();
      name.tid = fields.Next<uint32_t>();
      name.by_exec = (header->misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
      name.name = fields.Text();
      name.time = time;
      if (fields.Short()) return PerfInvalid{};
      return name;
    }
    case PERF_RECORD_MMAP2:
      return ReadMap(fields, header->misc, time);
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT: {
      PerfTask task;
      task.exit = header->type == PERF_RECORD_EXIT;
      task.pid = fields.Next<uint32_t>();
      task.parent = fields.Next<uint32_t>();
      task.tid = fields.Next<uint32_t>();
      task.time = time;
      if (fields.Short()) return PerfInvalid{};
      return task;
    }
    case PERF_RECORD_LOST: {
      fields.Next<uint64_t>();  // id of the event
      const PerfLost lost{fields.Next<uint64_t>()};
      if (fields.Short()) return PerfInvalid{};
      return lost;
    }
    case PERF_RECORD_LOST_SAMPLES: {
      const PerfLost lost{fields.Next<uint64_t>()};
      if (fields.Short()) return PerfInvalid{};
      return lost;
    }
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
      return PerfThrottle{header->type == PERF_RECORD_THROTTLE};
    default:
      return PerfOther{};
  }
}

}  // namespace xenoscope::sampler
