// Axes of pictures: where the ticks are and what they say; and how values become places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace xenoscope::report {

enum class AxisKind : uint8_t {
  kNumber,   // 1, 2, 1.5 k, 3 M
  kInteger,  // as kNumber, whole numbers only
  kShare,    // a fraction of 1 as 50%
  kSeconds,  // 20 ms
  kState,    // runstates by name
};

// A value as the axis writes it, in the unit that suits `high`.
std::string Label(AxisKind kind, double value, double high);

struct Tick {
  double at = 0;  // in the axis's values; of ScatterPlot in [0, 1]
  std::string label;
};

// Round values (1, 2 or 5 times a power of ten) within [low, high], at most `most` of them (at
// least 2), as few labels as say all.
std::vector<Tick> LinearTicks(AxisKind kind, double low, double high, size_t max_ticks);
// Powers of ten within [low, high], low > 0, and when these are few, twice and five times them.
std::vector<Tick> LogTicks(AxisKind kind, double low, double high, size_t max_ticks);
// The smallest round value that is at least `value`: the end of an axis that begins at 0.
double RoundUp(double value);

// Addresses are few small islands in a sea of 2^64: an axis that shows the islands only, each to
// its scale, in their order. Memory: at most kMaxChunks chunks, whose size doubles to make do.
class BrokenAxis {
 public:
  void Add(uint64_t address);
  // To be called when all are added.
  void Finish();
  // The place of an added address in [0, 1).
  double Place(uint64_t address) const;
  // The beginnings of islands, the larger ones first, where they are far enough apart.
  std::vector<Tick> Ticks(size_t max_ticks) const;

 private:
  static constexpr size_t kMaxChunks = 1024;

  int shift_ = 12;  // chunks are pages to begin with
  std::vector<uint64_t> chunks_;
  uint64_t last_ = UINT64_MAX;  // the chunk met last: most addresses are near the one before
};

}  // namespace xenoscope::report
