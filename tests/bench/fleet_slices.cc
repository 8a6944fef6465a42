// Fills a store with slices of simulated hosts, for scripts/bench fleet. They are like the slice
// that a store has already: each part of it has a random number of samples with its mean. Code that
// has one sample there stands for code that is seen seldom: in each slice it is one of ten
// functions.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "store/store.h"
#include "store/tables.h"

namespace xenoscope::store {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kMinuteNs = 60 * kNsPerSecond;
constexpr int64_t kBeginNs = 1'767'225'600 * kNsPerSecond;  // 2026-01-01

struct Options {
  std::string like;  // a store with one slice
  std::string to;
  uint32_t first_host = 0;
  uint32_t hosts = 1;
  uint32_t first_minute = 0;
  uint32_t minutes = 60;
  uint32_t length = 1;  // of a slice, in minutes
};

// Draws slices of so many minutes.
class Drawer {
 public:
  Drawer(Slice like, Dictionary dictionary, uint32_t minutes, uint64_t seed)
      : like_(std::move(like)),
        dictionary_(std::move(dictionary)),
        length_ns_(minutes * kMinuteNs),
        random_(seed) {
    std::map<CodeNumber, double> samples;
    for (const PartSums& part : like_.sums.parts) samples[part.code] += part.sums.x;
    for (const auto& [code, x] : samples) {
      if (x <= 1) rare_.push_back(code);
    }
    factor_ = static_cast<double>(length_ns_) /
              static_cast<double>(like_.head.end_ns - like_.head.begin_ns);
  }

  // Returns a slice of the host, whose guests have names of their own.
  Slice Draw(uint32_t host, uint32_t minute) {
    Slice slice;
    slice.head = like_.head;
    slice.head.host = fmt::format("host{:04}", host);
    slice.head.begin_ns = kBeginNs + minute * kMinuteNs;
    slice.head.end_ns = slice.head.begin_ns + length_ns_;
    slice.sums = like_.sums;
    DrawParts(slice.sums);
    DrawStrata(slice.sums);
    for (VcpuSums& vcpu : slice.sums.vcpus) Multiply(vcpu, factor_ * Noise());
    for (PairSums& pair : slice.sums.pairs) Multiply(pair, factor_ * Noise());
    for (Counter& counter : slice.sums.counters)
      counter.value = std::round(counter.value * factor_);
    SetRareCode(slice.sums);
    SetGuests(host, slice.sums);
    return slice;
  }
  const Dictionary& dictionary() const { return dictionary_; }

 private:
  double Noise() { return std::lognormal_distribution<double>(0, 0.2)(random_); }

  // Multiplies the sums of a row.
  template <typename Sums>
  static void Multiply(Sums& row, double by) {
    std::apply(
        [by](auto&... fields) {
          const auto multiply = [by](auto& field) {
            if constexpr (std::is_same_v<std::decay_t<decltype(field)>, double>) field *= by;
            if constexpr (std::is_same_v<std::decay_t<decltype(field)>, uint64_t>) {
              field = static_cast<uint64_t>(std::llround(static_cast<double>(field) * by));
            }
          };
          (multiply(fields), ...);
        },
        Table<Sums>::Fields(row));
  }

  void DrawParts(SliceSums& sums) {
    std::set<std::pair<VcpuNumber, CodeNumber>> drawn;
    std::vector<PartSums> parts;
    for (PartSums part : sums.parts) {
      const int samples =
          part.sums.x > 0 ? std::poisson_distribution<int>(part.sums.x * factor_)(random_) : 0;
      if (samples == 0) continue;
      // Parts of samples stay parts of samples, with as many different values.
      const bool is_whole = part.sums.x == std::round(part.sums.x);
      Multiply(part, samples / part.sums.x * (is_whole ? 1 : Noise()));
      drawn.emplace(part.vcpu, part.code);
      parts.push_back(part);
    }
    sums.parts = std::move(parts);
    std::erase_if(sums.unions, [&](const UnionSums& row) {
      return !drawn.contains({row.vcpu, row.code});
    });
    for (UnionSums& row : sums.unions) Multiply(row, factor_ * Noise());
    std::erase_if(sums.crosses, [&](const CrossSums& row) {
      return std::poisson_distribution<int>(std::abs(row.xx) * factor_)(random_) == 0;
    });
    for (CrossSums& row : sums.crosses) Multiply(row, factor_ * Noise());
  }

  // Strata have the samples of their parts.
  void DrawStrata(SliceSums& sums) {
    std::map<std::pair<VcpuNumber, ContextNumber>, double> samples;
    for (const PartSums& part : sums.parts) {
      samples[{part.vcpu, part.context}] += part.sums.x;
      samples[{kAllVcpus, part.context}] += part.sums.x;
    }
    for (StratumSums& stratum : sums.strata) {
      const double before = stratum.totals.n;
      const double cycles = stratum.cycles * factor_ * Noise();
      const double n = samples[{stratum.vcpu, stratum.context}];
      Multiply(stratum, before > 0 ? n / before : 0);
      stratum.cycles = cycles;
      stratum.totals.n = n;
    }
  }

  void SetRareCode(SliceSums& sums) {
    constexpr int kFunctions = 10;
    std::map<CodeNumber, CodeNumber> other;
    for (const CodeNumber code : rare_) {
      CodeKey key = dictionary_.codes[code];
      key.function += fmt::format("~{}", std::uniform_int_distribution(1, kFunctions)(random_));
      other[code] = dictionary_.codes.Intern(key);
    }
    const auto rename = [&other](auto& rows) {
      for (auto& row : rows) {
        if (const auto found = other.find(row.code); found != other.end()) row.code = found->second;
      }
    };
    rename(sums.parts);
    rename(sums.unions);
    rename(sums.crosses);
  }

  // Gives the domains but dom0 names of the host.
  void SetGuests(uint32_t host, SliceSums& sums) {
    (void)ForEachTable([&]<typename Sums>() {
      if constexpr (requires(Sums row) { row.vcpu; }) {
        for (Sums& row : sums.*Table<Sums>::kRows) {
          if (row.vcpu == kAllVcpus) continue;
          VcpuKey key = dictionary_.vcpus[row.vcpu];
          if (key.domain == "Domain-0") continue;
          key.domain += fmt::format("-{:04}", host);
          row.vcpu = dictionary_.vcpus.Intern(key);
        }
      }
      return absl::OkStatus();
    });
  }

  Slice like_;
  Dictionary dictionary_;
  int64_t length_ns_;
  std::vector<CodeNumber> rare_;
  std::mt19937_64 random_;
  double factor_ = 1;
};

size_t RowsOf(const SliceSums& sums) {
  size_t rows = 0;
  (void)ForEachTable([&]<typename Sums>() {
    rows += (sums.*Table<Sums>::kRows).size();
    return absl::OkStatus();
  });
  return rows;
}

absl::StatusOr<Drawer> Open(const Options& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                             OpenStore(options.like, Access::kRead));
  Slice like;
  Dictionary dictionary;
  XENOSCOPE_RETURN_IF_ERROR(store->Read({}, [&](const Slice& slice, const Dictionary& keys) {
    like = slice;
    dictionary = keys;
    return absl::OkStatus();
  }));
  return Drawer(std::move(like), std::move(dictionary), options.length, options.first_host);
}

absl::Status Fill(const Options& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(Drawer drawer, Open(options));
  XENOSCOPE_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                             OpenStore(options.to, Access::kCreate));
  size_t slices = 0;
  size_t rows = 0;
  std::chrono::duration<double> pushing{};
  for (uint32_t minute = 0; minute < options.minutes; minute += options.length) {
    for (uint32_t host = 0; host < options.hosts; ++host) {
      const Slice slice = drawer.Draw(options.first_host + host, options.first_minute + minute);
      const auto begin = std::chrono::steady_clock::now();
      XENOSCOPE_RETURN_IF_ERROR(store->Push(slice, drawer.dictionary()).status());
      pushing += std::chrono::steady_clock::now() - begin;
      ++slices;
      rows += RowsOf(slice.sums);
    }
  }
  fmt::print("{} {} {:.3f}\n", slices, rows, pushing.count());
  return absl::OkStatus();
}

}  // namespace
}  // namespace xenoscope::store

int main(int argc, char** argv) try {
  CLI::App app("Fills a store with simulated slices. Prints slices, rows, seconds of pushing.");
  xenoscope::store::Options options;
  app.add_option("--like", options.like, "Store with one slice that all are like")->required();
  app.add_option("--to", options.to, "Store to fill")->required();
  app.add_option("--first-host", options.first_host, "Number of the first host");
  app.add_option("--hosts", options.hosts, "Number of hosts");
  app.add_option("--first-minute", options.first_minute, "Minute of the first slice");
  app.add_option("--minutes", options.minutes, "Time of each host");
  app.add_option("--length", options.length, "Minutes of a slice")->check(CLI::Range(1, 1440));
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Fill(options);
  if (status.ok()) return EXIT_SUCCESS;
  fmt::print(stderr, "fleet_slices: {}\n", xenoscope::Message(status));
  return EXIT_FAILURE;
} catch (const std::exception& error) {
  (void)std::fputs(error.what(), stderr);
  return EXIT_FAILURE;
}
