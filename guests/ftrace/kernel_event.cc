#include "guests/ftrace/kernel_event.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace xenoscope::guests {

// The names of the fields, as include/trace/events/{sched,task,irq,cgroup,initcall,signal}.h have
// them, and those of functions, as kernel/trace/trace_entries.h has them. Empty: the event does not
// have it.
struct EventDecoder::Names {
  std::string_view event;
  KernelEventKind kind;
  std::string_view thread{};
  std::string_view next{};
  std::string_view state{};
  std::string_view number{};
  std::string_view name{};
  std::string_view path{};
  std::string_view system{};  // empty: any, as no two systems have an event of this name

  static const Names* Find(const EventFormat& format);
};

const EventDecoder::Names* EventDecoder::Names::Find(const EventFormat& format) {
  using Kind = KernelEventKind;
  static constexpr std::string_view kFtrace = "ftrace";  // the tracers' own events
  static constexpr std::array kAll{
      Names{.event = "sched_switch",
            .kind = Kind::kSwitch,
            .thread = "prev_pid",
            .next = "next_pid",
            .state = "prev_state",
            .name = "next_comm"},
      Names{.event = "sched_waking",
            .kind = Kind::kWaking,
            .thread = "pid",
            .number = "target_cpu",
            .name = "comm"},
      Names{.event = "sched_wakeup_new",
            .kind = Kind::kWakeupNew,
            .thread = "pid",
            .number = "target_cpu",
            .name = "comm"},
      Names{.event = "sched_process_fork",
            .kind = Kind::kFork,
            .thread = "child_pid",
            .number = "parent_pid",
            .name = "child_comm"},
      Names{
          .event = "sched_process_exec", .kind = Kind::kExec, .thread = "pid", .name = "filename"},
      Names{.event = "sched_process_exit", .kind = Kind::kExit, .thread = "pid", .name = "comm"},
      Names{.event = "sched_migrate_task",
            .kind = Kind::kMigrate,
            .thread = "pid",
            .number = "dest_cpu",
            .name = "comm"},
      Names{.event = "task_newtask",
            .kind = Kind::kNewTask,
            .thread = "pid",
            .number = "clone_flags",
            .name = "comm"},
      Names{.event = "task_rename", .kind = Kind::kRename, .thread = "pid", .name = "newcomm"},
      Names{.event = "irq_handler_entry", .kind = Kind::kIrqEntry, .number = "irq", .name = "name"},
      Names{.event = "irq_handler_exit", .kind = Kind::kIrqExit, .number = "irq"},
      Names{.event = "softirq_entry", .kind = Kind::kSoftirqEntry, .number = "vec"},
      Names{.event = "softirq_exit", .kind = Kind::kSoftirqExit, .number = "vec"},
      Names{.event = "cgroup_mkdir", .kind = Kind::kCgroupMkdir, .number = "id", .path = "path"},
      Names{.event = "cgroup_rename", .kind = Kind::kCgroupRename, .number = "id", .path = "path"},
      Names{.event = "cgroup_attach_task",
            .kind = Kind::kCgroupAttach,
            .thread = "pid",
            .number = "dst_id",
            .name = "comm",
            .path = "dst_path"},
      Names{.event = "cgroup_transfer_tasks",
            .kind = Kind::kCgroupTransfer,
            .thread = "pid",
            .number = "dst_id",
            .name = "comm",
            .path = "dst_path"},
      Names{.event = "initcall_level", .kind = Kind::kInitcallLevel, .name = "level"},
      Names{.event = "initcall_start", .kind = Kind::kInitcallStart, .number = "func"},
      Names{.event = "initcall_finish",
            .kind = Kind::kInitcallFinish,
            .state = "ret",
            .number = "func"},
      Names{.event = "sys_enter", .kind = Kind::kSyscallEnter, .number = "id"},
      Names{.event = "sys_exit", .kind = Kind::kSyscallExit, .state = "ret", .number = "id"},
      Names{.event = "contention_begin",
            .kind = Kind::kContentionBegin,
            .state = "flags",
            .number = "lock_addr"},
      Names{.event = "contention_end",
            .kind = Kind::kContentionEnd,
            .state = "ret",
            .number = "lock_addr"},
      Names{.event = "signal_generate",
            .kind = Kind::kSignal,
            .thread = "pid",
            .state = "result",
            .number = "sig",
            .name = "comm"},
      Names{.event = "sys_enter_reboot", .kind = Kind::kReboot, .number = "cmd"},
      Names{.event = "funcgraph_entry",
            .kind = Kind::kFunctionEntry,
            .state = "depth",
            .number = "func",
            .system = kFtrace},
      Names{.event = "funcgraph_exit",
            .kind = Kind::kFunctionReturn,
            .state = "depth",
            .number = "func",
            .system = kFtrace},
      Names{.event = "function",
            .kind = Kind::kFunctionCall,
            .state = "parent_ip",
            .number = "ip",
            .system = kFtrace},
  };
  static_assert(kAll.size() == kKernelEventKinds);
  const auto* const found = std::ranges::find_if(kAll, [&format](const Names& names) {
    return names.event == format.name && (names.system.empty() || names.system == format.system);
  });
  return found == kAll.end() ? nullptr : found;
}

absl::StatusOr<EventDecoder::Layout> EventDecoder::Bind(const EventFormat& format,
                                                        const Names& names) {
  Layout layout;
  layout.kind = names.kind;
  const auto bind = [&](std::string_view name, bool is_text, Place& place) -> absl::Status {
    if (name.empty()) return absl::OkStatus();
    const EventField* const field = format.Find(name);
    if (field == nullptr) {
      return InvalidError("the guest's {} has no field {}", format.name, name);
    }
    const bool fits = is_text ? field->is_array
                              : !field->is_array && field->size != 0 &&
                                    field->size <= sizeof(uint64_t) &&
                                    (field->size & (field->size - 1)) == 0;
    if (!fits || field->offset + field->size > UINT16_MAX) {
      return InvalidError("the field {} of the guest's {} has {} bytes", name, format.name,
                          field->size);
    }
    place = {static_cast<uint16_t>(field->offset), static_cast<uint16_t>(field->size),
             field->is_dynamic};
    layout.min_size = std::max(layout.min_size, field->offset + field->size);
    return absl::OkStatus();
  };
  XENOSCOPE_RETURN_IF_ERROR(bind("common_pid", /*is_text=*/false, layout.current));
  XENOSCOPE_RETURN_IF_ERROR(bind(names.thread, /*is_text=*/false, layout.thread));
  XENOSCOPE_RETURN_IF_ERROR(bind(names.next, /*is_text=*/false, layout.next));
  XENOSCOPE_RETURN_IF_ERROR(bind(names.state, /*is_text=*/false, layout.state));
  XENOSCOPE_RETURN_IF_ERROR(bind(names.number, /*is_text=*/false, layout.number));
  XENOSCOPE_RETURN_IF_ERROR(bind(names.name, /*is_text=*/true, layout.name));
  XENOSCOPE_RETURN_IF_ERROR(bind(names.path, /*is_text=*/true, layout.path));
  return layout;
}

absl::StatusOr<EventDecoder> EventDecoder::Create(const Formats& formats) {
  EventDecoder decoder;
  std::array<bool, kKernelEventKinds> known{};
  for (const EventFormat& format : formats.events) {
    const Names* const names = Names::Find(format);
    if (names == nullptr || known[static_cast<size_t>(names->kind)]) continue;
    XENOSCOPE_ASSIGN_OR_RETURN(const Layout layout, Bind(format, *names));
    if (decoder.by_id_.size() <= format.id) decoder.by_id_.resize(format.id + size_t{1}, kNone);
    decoder.by_id_[format.id] = static_cast<uint8_t>(decoder.layouts_.size());
    decoder.layouts_.push_back(layout);
    known[static_cast<size_t>(names->kind)] = true;
  }
  return decoder;
}

// `place` is within `data`.
uint64_t EventDecoder::Number(Bytes data, Place place) {
  const std::byte* const from = data.data() + place.offset;
  switch (place.size) {
    case sizeof(uint8_t):
      return LoadUnchecked<uint8_t>(from);
    case sizeof(uint16_t):
      return LoadUnchecked<uint16_t>(from);
    case sizeof(uint32_t):
      return LoadUnchecked<uint32_t>(from);
    case sizeof(uint64_t):
      return LoadUnchecked<uint64_t>(from);
    default:
      return 0;
  }
}

// `place` is within `data`; a value that it points to may not be.
std::string_view EventDecoder::Text(Bytes data, Place place) {
  uint32_t offset = place.offset;
  uint32_t size = place.size;
  if (place.is_dynamic) {
    const auto where = LoadUnchecked<uint32_t>(data.data() + place.offset);
    offset = where & 0xffff;
    size = where >> 16;
  }
  const std::string_view text = AsText(Slice(data, offset, size).value_or(Bytes()));
  return text.substr(0, text.find('\0'));
}

bool EventDecoder::Decode(const RawEvent& raw, KernelEvent& to, bool& malformed) const {
  malformed = raw.data.size() < sizeof(uint16_t);
  if (malformed) return false;
  const auto id = LoadUnchecked<uint16_t>(raw.data.data());
  if (id >= by_id_.size() || by_id_[id] == kNone) return false;
  const Layout& layout = layouts_[by_id_[id]];
  malformed = raw.data.size() < layout.min_size;
  if (malformed) return false;
  to.kind = layout.kind;
  to.tsc = raw.tsc;
  to.current = static_cast<uint32_t>(Number(raw.data, layout.current));
  to.thread = static_cast<uint32_t>(Number(raw.data, layout.thread));
  to.next = static_cast<uint32_t>(Number(raw.data, layout.next));
  to.state = Number(raw.data, layout.state);
  to.number = Number(raw.data, layout.number);
  to.name = layout.name.size == 0 ? std::string_view() : Text(raw.data, layout.name);
  to.path = layout.path.size == 0 ? std::string_view() : Text(raw.data, layout.path);
  return true;
}

}  // namespace xenoscope::guests
