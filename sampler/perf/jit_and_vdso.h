// Code of processes that is in none of their files: the vDSO, which the kernel gives to all, and
// the output of JIT compilers. JIT compilers can write their functions to /tmp/perf-PID.map (the
// kernel's tools/perf/Documentation/jit-interface.txt).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace xenoscope::sampler {

// Returns the vDSO of 64-bit processes, an ELF file: that of this process. Empty when it has none.
std::vector<std::byte> ReadVdso();

// Limit of the maps of all processes together, in bytes: a recorder takes no more from an agent.
inline constexpr size_t kMaxPerfMapBytes = size_t{48} << 20;

// The functions of /tmp/perf-PID.map files, one file after the other, as docs/recording-format.md
// describes: "# PID", then those of the file's lines that are functions; others are left out, as a
// user may have put anything there.
class PerfMapText {
 public:
  explicit PerfMapText(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Adds the file of that process, as far as there is room; nothing if it is not open.
  void Add(const File& map, uint32_t pid);
  // Adds a text of this form, of several calls of ReadGrownPerfMap for example; none of it if there
  // is no room.
  void Add(std::string_view text);
  // Adds all of the other text, which is no longer than there is room.
  void Add(const PerfMapText& other);
  // Returns the text, with "# cut" last when there would be more.
  [[nodiscard]] std::string Take() &&;

 private:
  size_t max_bytes_;
  std::string text_;
  bool is_cut_ = false;
};

// What was read of a file that grows.
struct PerfMapPlace {
  size_t read = 0;   // bytes, up to the end of a line
  std::string tail;  // the last of these: they change if the file was written anew
};

// Returns the functions that were added to a process's open map since `place`, as a text of
// PerfMapText, of at most `most` bytes of the file, and moves `place` behind them; all of them if
// the file was written anew. O(most).
std::string ReadGrownPerfMap(const File& map, uint32_t pid, size_t most, PerfMapPlace& place);

// The file of a running process.
struct PerfMapFile {
  File process;  // its directory in /proc; not open: there is no such process
  File map;      // not open: it has none, or none that may be read
};

// Opens the process's file in its own /tmp, under its number in its own namespace. `process` is its
// directory in /proc. Any user can write to /tmp: only a file of the process's own user is opened,
// with that user's rights (open_as_user.h).
PerfMapFile OpenPerfMap(const std::string& process, uint32_t pid);

}  // namespace xenoscope::sampler
