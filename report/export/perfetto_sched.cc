#include "report/export/perfetto_sched.h"

#include <cstddef>

namespace xenoscope::report {
namespace {

using perfetto::BundleField;
using perfetto::FtraceField;
using perfetto::Message;
using perfetto::NewtaskField;
using perfetto::PacketField;
using perfetto::SwitchField;
using perfetto::WakingField;

constexpr int32_t kUsualPriority = 120;
constexpr uint64_t kCloneThread = 0x10000;  // CLONE_THREAD of clone(2)
constexpr size_t kBundleBytes = size_t{1} << 15;

template <typename Field>
void PutName(Message<Field>& message, Field field, std::string_view name) {
  message.add_string(field, name.data(), name.size());
}

}  // namespace

template <typename F>
void PerfettoSched::Put(uint32_t cpu, Tsc at, int32_t tid, F add) {
  if (cpu >= kMaxCpus) {
    ++left_out_;
    return;
  }
  if (cpu >= cpus_.size()) cpus_.resize(size_t{cpu} + 1);
  Cpu& on = cpus_[cpu];
  {
    Message<BundleField> bundle(on.bundle);
    if (on.bundle.empty()) {
      bundle.add_uint32(BundleField::kCpu, cpu);
      if (on.after_loss) bundle.add_bool(BundleField::kLostEvents, true);
      on.after_loss = false;
    }
    Message<FtraceField> event(bundle, BundleField::kEvent);
    event.add_uint64(FtraceField::kTimestamp, packets_.Time(at));
    event.add_uint32(FtraceField::kPid, static_cast<uint32_t>(tid));
    add(event);
  }
  if (on.bundle.size() >= kBundleBytes) PutBundle(on);
}

void PerfettoSched::PutSwitch(uint32_t cpu, Tsc at, const Thread& before, int64_t state,
                              const Thread& after) {
  Put(cpu, at, before.tid, [&](Message<FtraceField>& event) {
    Message<SwitchField> put(event, FtraceField::kSchedSwitch);
    PutName(put, SwitchField::kPrevComm, before.name);
    put.add_int32(SwitchField::kPrevPid, before.tid);
    put.add_int32(SwitchField::kPrevPrio, kUsualPriority);
    put.add_int64(SwitchField::kPrevState, state);
    PutName(put, SwitchField::kNextComm, after.name);
    put.add_int32(SwitchField::kNextPid, after.tid);
    put.add_int32(SwitchField::kNextPrio, kUsualPriority);
  });
}

void PerfettoSched::PutWaking(uint32_t cpu, Tsc at, int32_t waker, const Thread& woken) {
  Put(cpu, at, waker, [&](Message<FtraceField>& event) {
    Message<WakingField> put(event, FtraceField::kSchedWaking);
    PutName(put, WakingField::kComm, woken.name);
    put.add_int32(WakingField::kPid, woken.tid);
    put.add_int32(WakingField::kPrio, kUsualPriority);
  });
}

void PerfettoSched::PutNewThread(uint32_t cpu, Tsc at, int32_t parent, const Thread& added,
                                 bool begins_process) {
  Put(cpu, at, parent, [&](Message<FtraceField>& event) {
    Message<NewtaskField> put(event, FtraceField::kTaskNewtask);
    put.add_int32(NewtaskField::kPid, added.tid);
    PutName(put, NewtaskField::kComm, added.name);
    put.add_uint64(NewtaskField::kCloneFlags, begins_process ? 0 : kCloneThread);
  });
}

void PerfettoSched::PutLoss(uint32_t cpu) {
  if (cpu >= cpus_.size()) return;
  PutBundle(cpus_[cpu]);
  cpus_[cpu].after_loss = true;
}

void PerfettoSched::PutBundle(Cpu& cpu) {
  if (cpu.bundle.empty()) return;
  std::string packet;
  Message<PacketField> message(packet);
  message.add_uint32(PacketField::kSequence, perfetto::kSequenceNumber);
  message.add_message(PacketField::kFtraceEvents, cpu.bundle);
  cpu.bundle.clear();
  packets_.PutPacket(packet);
}

void PerfettoSched::Finish() {
  for (Cpu& cpu : cpus_) PutBundle(cpu);
}

}  // namespace xenoscope::report
