#include "sampler/ftrace/boot_trace.h"

#include <unistd.h>

#include <cerrno>
#include <span>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/error.h"
#include "base/ids.h"
#include "recording/sample_format.h"
#include "recording/sample_writer.h"
#include "sampler/ftrace/trace_instance.h"
#include "sampler/small_file.h"

namespace xenoscope::sampler {
namespace {

// Appends the CPU's pages until it has no more, or there are `most` bytes.
absl::StatusOr<std::vector<std::byte>> ReadPages(const TraceInstance& instance, uint32_t cpu,
                                                 size_t most) {
  XENOSCOPE_ASSIGN_OR_RETURN(const File file, instance.OpenPages(cpu));
  std::vector<std::byte> pages;
  const size_t page_size = instance.page_size();
  while (pages.size() + page_size <= most) {
    const size_t at = pages.size();
    pages.resize(at + page_size);
    const ssize_t got = read(file.fd(), pages.data() + at, page_size);
    if (got == static_cast<ssize_t>(page_size)) continue;
    pages.resize(at);
    if (got >= 0 || errno == EAGAIN) break;
    if (errno != EINTR) return ErrnoError(errno, "cannot read the trace of CPU {}'s boot", cpu);
  }
  return pages;
}

}  // namespace

bool RecordsBoot(std::string_view command_line) {
  bool has_initcalls = false;
  bool by_tsc = false;
  const std::string line(command_line);
  const std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(" \n"));
  for (const std::string& word : words) {
    has_initcalls |= word.starts_with("trace_event=") && word.find("initcall") != std::string::npos;
    by_tsc |= word == "trace_clock=x86-tsc";
  }
  return has_initcalls && by_tsc;
}

absl::StatusOr<std::vector<std::byte>> TakeBootTrace(const std::string& root,
                                                     std::string_view command_line) {
  if (!RecordsBoot(command_line)) {
    return PreconditionError(
        "its kernel did not record its boot: boot it with the options of `xenoscope boot "
        "--kernel-options`");
  }
  const std::string clock = ReadSmallFile(root + "/trace_clock").value_or("");
  if (clock.find("[x86-tsc]") == std::string::npos) {
    return PreconditionError("its kernel traces by another clock than the TSC by now");
  }
  XENOSCOPE_ASSIGN_OR_RETURN(TraceInstance instance, TraceInstance::First(root));
  XENOSCOPE_RETURN_IF_ERROR(instance.TurnOff());
  XENOSCOPE_ASSIGN_OR_RETURN(const std::string formats, instance.Formats());
  recording::SampleWriter writer = recording::SampleWriter::InMemory();
  writer.AppendTraceFormats(kDom0, formats);
  size_t room = kMaxBootTraceBytes;
  bool is_empty = true;
  for (const uint32_t cpu : instance.cpus()) {
    XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<std::byte> pages, ReadPages(instance, cpu, room));
    if (pages.empty()) continue;
    is_empty = false;
    room -= pages.size();
    writer.AppendTracePages({kDom0, VcpuId{cpu}}, {}, static_cast<uint32_t>(instance.page_size()),
                            pages);
  }
  // Functions that are traced cost time as long as there is a tracer. It takes the pages with it,
  // and where it cannot be removed they are good all the same.
  if (instance.Tracer() != TraceInstance::kNoTracer) instance.RemoveTracer().IgnoreError();
  if (is_empty) {
    return PreconditionError(
        "the trace of its boot has been read by another program, or by an agent before this one");
  }
  const recording::FileHeader header;
  const auto bytes = std::as_bytes(std::span(&header, 1));
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  const std::vector<std::byte> chunks = writer.Take();
  file.insert(file.end(), chunks.begin(), chunks.end());
  return file;
}

}  // namespace xenoscope::sampler
