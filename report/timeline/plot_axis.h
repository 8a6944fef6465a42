// The axes of pictures: the places of ticks, their labels, and the places of values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace xenoscope::report {

// The kind of an axis: its labels and the places of its ticks.
enum class AxisKind : uint8_t {
  kNumber,   // 1, 2, 1.5 k, 3 M
  kInteger,  // as kNumber, for whole numbers only
  kShare,    // a fraction of 1, shown as 50%
  kSeconds,  // 20 ms
  kState,    // runstates by name
};

// Returns the label of a value, in the unit that suits `high`.
std::string Label(AxisKind kind, double value, double high);

// A tick of an axis.
struct Tick {
  double at = 0;  // the value of the axis; the place in [0, 1] for a ScatterPlot
  std::string label;
};

// Returns ticks at round values (1, 2 or 5 times a power of ten) within [low, high]. There are at
// most `max_ticks` of them; `max_ticks` is at least 2.
std::vector<Tick> LinearTicks(AxisKind kind, double low, double high, size_t max_ticks);
// Returns ticks at powers of ten within [low, high]; `low` is above 0. When these are few, there
// are ticks at two and five times the powers of ten too.
std::vector<Tick> LogTicks(AxisKind kind, double low, double high, size_t max_ticks);
// Returns the smallest round value that is at least `value`: the end of an axis that begins at 0.
double RoundUp(double value);

// An axis for addresses. Addresses form a few small islands in the range of 2^64. The axis shows
// the islands only, in their order and all to one scale. Memory is at most kMaxChunks chunks: the
// size of a chunk doubles when there are more.
class BrokenAxis {
 public:
  // Adds an address, which the axis will show.
  void Add(uint64_t address);
  // Completes the axis. The caller calls it after all calls of Add.
  void Finish();
  // Returns the place of an added address, in [0, 1).
  double Place(uint64_t address) const;
  // Returns ticks at the beginnings of islands that are far enough apart. Larger islands have
  // precedence.
  std::vector<Tick> Ticks(size_t max_ticks) const;

 private:
  static constexpr size_t kMaxChunks = 1024;

  int shift_ = 12;  // log2 of the bytes of a chunk; chunks are pages at first
  std::vector<uint64_t> chunks_;
  uint64_t last_ = UINT64_MAX;  // the last chunk: most addresses are near the one before
};

}  // namespace xenoscope::report
