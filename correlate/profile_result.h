// What a profile says: rows with their shares, and what was checked about them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/address_space_id.h"
#include "base/ids.h"
#include "base/mode.h"
#include "correlate/context.h"
#include "correlate/estimate.h"
#include "correlate/event_sums.h"
#include "correlate/placing/placed_sample.h"
#include "correlate/stacks.h"

namespace xenoscope::correlate {

// What a row has of one stratum (docs/method.md, section 4.1).
struct RowPart {
  VcpuRef vcpu;
  Context context;
  double samples = 0;          // the row's samples in the stratum
  double stratum_samples = 0;  // the stratum's samples, of all rows
  uint64_t clusters = 0;       // running intervals that have samples of the stratum
  double stratum_cycles = 0;   // the stratum's size; in samples, if the event does not count time
  double variance = 0;         // what the stratum adds to the variance of the row's share
};

// What a row has with all that its functions called.
struct RowTotal {
  double samples = 0;
  double share = 0;
  Interval interval;
  double cycles = 0;
};

// Fields of dimensions that were not asked for keep their defaults.
struct ProfileRow {
  DomainId domain;
  VcpuId vcpu;
  PcpuId pcpu;
  Mode mode = Mode::kUser;
  Context exit;  // with the subreason, and the vCPUs that waited, where that was asked for
  std::string image;
  std::string function;
  std::string line;
  Address address = 0;
  Address page = 0;  // the address without its lower 12 bits
  AddressSpaceId process;
  // Names by ProfileOptions::threads; empty: not known. That of the process is for samples that do
  // not know their own.
  std::string thread;
  std::string container;
  std::string process_of_thread;
  std::string host;                // only in profiles of several hosts
  std::optional<DomainId> behalf;  // the domain on whose behalf the process works
  uint32_t stack = 0;              // index into ProfileResult::stacks
  // Where the result has subtotals: the index of the row that this one is a part of, in the level
  // above: the last of ProfileResult::subtotals, or of chosen_subtotals, for its rows. Only of
  // chosen rows.
  uint32_t part_of = 0;
  Placement placing = Placement::kUntraced;

  double samples = 0;             // the sum of the weights of its samples
  double share = 0;               // the part of all time, in [0, 1]
  Interval interval;              // the confidence interval of the share
  double variance = 0;            // the variance of the share; 0: the share is known exactly
  double cycles = 0;              // 0 when the event does not count time
  std::optional<RowTotal> total;  // where ProfileOptions ask for it; what is above is then of self
  std::vector<RowPart> parts;     // filled where ProfileOptions ask for them
  // Only of several events: the row's samples by event, and the ratios that ProfileOptions ask for.
  std::vector<double> event_samples;
  std::vector<RatioEstimate> ratios;
};

// A domain's sampled share of time against its traced share (method.md §6).
struct DomainCheck {
  DomainId domain;
  double sampled = 0;
  double traced = 0;
  double error = 0;  // standard error of `sampled`
  [[nodiscard]] bool Agrees() const;
};

struct Unresolved {
  std::string why;
  double samples = 0;
};

struct ProfileResult {
  std::vector<ProfileRow> rows;     // in no order
  bool has_totals = false;          // rows have totals
  std::vector<ProfileRow> domains;  // the same samples by domain alone
  // The same samples by the first 2, 3, ... columns, where ProfileOptions ask for that: the inner
  // nodes of a tree below those by the first column, which is the domain.
  std::vector<std::vector<ProfileRow>> subtotals;
  // In place of them where ProfileOptions choose rows: of these alone, by the first 1, 2, ...
  // columns. Those by the domain stand for `domains` where only chosen rows are shown.
  std::vector<std::vector<ProfileRow>> chosen_subtotals;
  std::vector<Stack> stacks;         // with addresses where rows are by address too
  std::vector<std::string> inlined;  // functions, by number of frames of inlined ones
  std::vector<Context> exits;        // by number of frames of exits
  std::vector<DomainCheck> checks;   // empty without a trace
  std::vector<Unresolved> unresolved;
  double samples = 0;           // attributed samples
  double cycles = 0;            // the cycles that they stand for
  double unsampled_cycles = 0;  // of the same domains, in strata without a sample
  // Only of several events: the attributed samples by event, and the ratios of all rows together.
  std::vector<double> event_samples;
  std::vector<RatioEstimate> ratios;
};

}  // namespace xenoscope::correlate
