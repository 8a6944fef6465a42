#include "report/export/pprof.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <protozero/pbf_builder.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/string_interner.h"
#include "report/export/gzip.h"
#include "report/markup.h"
#include "report/table/cumulative_rounder.h"

namespace xenoscope::report {
namespace {

using correlate::ContextKind;
using correlate::Dimension;
using correlate::ProfileRow;
using correlate::StackFrame;

// The field numbers of profile.proto.
enum class ProfileField : protozero::pbf_tag_type {
  kSampleType = 1,
  kSample = 2,
  kMapping = 3,
  kLocation = 4,
  kFunction = 5,
  kStringTable = 6,
  kTimeNanos = 9,
  kDurationNanos = 10,
  kPeriodType = 11,
  kComment = 13,
  kDefaultSampleType = 14,
};
enum class ValueTypeField : protozero::pbf_tag_type { kType = 1, kUnit = 2 };
enum class SampleField : protozero::pbf_tag_type { kLocationId = 1, kValue = 2, kLabel = 3 };
enum class LabelField : protozero::pbf_tag_type { kKey = 1, kStr = 2 };
enum class MappingField : protozero::pbf_tag_type {
  kId = 1,
  kFilename = 5,
  kBuildId = 6,
  kHasFunctions = 7,
  kHasFilenames = 8,
  kHasLineNumbers = 9,
  kHasInlineFrames = 10,
};
enum class LocationField : protozero::pbf_tag_type {
  kId = 1,
  kMappingId = 2,
  kAddress = 3,
  kLine = 4
};
enum class LineField : protozero::pbf_tag_type { kFunctionId = 1, kLine = 2 };
enum class FunctionField : protozero::pbf_tag_type {
  kId = 1,
  kName = 2,
  kSystemName = 3,
  kFilename = 4
};

template <typename Field>
using Message = protozero::pbf_builder<Field>;

class PprofWriter {
 public:
  PprofWriter(const ProfileReport& report, const ProfileSelection& selection,
              const std::vector<Dimension>& roots)
      : report_(report), selection_(selection), roots_(roots), profile_(out_) {
    Text("");  // string 0 must be empty
  }

  absl::StatusOr<std::string> Write() {
    PutType(ProfileField::kSampleType, "samples", "count");
    if (report_.is_time) {
      PutType(ProfileField::kSampleType, "cycles", "count");
      PutType(ProfileField::kSampleType, "time", "nanoseconds");
    }
    // Rows below 0 come first: see cumulative_rounder.h.
    for (const bool negative : {true, false}) {
      for (const ProfileRow& row : report_.result.rows) {
        if (IsSelected(selection_, row) && (row.samples < 0) == negative) PutSample(row);
      }
    }
    PutMappings();
    if (const auto utc = UtcOf(report_, report_.sampled.begin)) {
      profile_.add_int64(ProfileField::kTimeNanos, static_cast<int64_t>(*utc));
    }
    if (!report_.sampled.Empty()) {
      profile_.add_int64(ProfileField::kDurationNanos,
                         std::llround(Nanoseconds(static_cast<double>(report_.sampled.Length()))));
    }
    PutType(ProfileField::kPeriodType, report_.is_time ? "cycles" : "samples", "count");
    profile_.add_int64(ProfileField::kComment, Text(Printable(report_.event)));
    profile_.add_int64(ProfileField::kComment,
                       Text(fmt::format("{} of {} samples attributed", report_.counts.Attributed(),
                                        report_.counts.samples)));
    for (const std::string& caution : report_.cautions) {
      profile_.add_int64(ProfileField::kComment, Text(Printable(caution)));
    }
    profile_.add_int64(ProfileField::kDefaultSampleType,
                       Text(report_.is_time ? "time" : "samples"));
    for (const std::string& text : texts_.all()) {
      profile_.add_string(ProfileField::kStringTable, text);
    }
    return Gzip(out_);
  }

 private:
  // The place of code: domain, mode, address space, function, address. In user mode, equal
  // addresses of different processes are different places.
  using LocationKey = std::tuple<uint16_t, Mode, uint32_t, uint32_t, Address>;  // in this order
  struct Mapping {
    std::string path;
    std::string build_id;
    bool has_inlined = false;
    double weight = 0;  // of the samples in its own functions
  };

  int64_t Text(std::string_view text) { return texts_.Intern(text); }

  double Nanoseconds(double cycles) const {
    const auto hz = static_cast<double>(report_.clock.hz);
    return hz > 0 ? cycles * 1e9 / hz : 0;
  }

  void PutType(ProfileField field, std::string_view type, std::string_view unit) {
    Message<ValueTypeField> message(profile_, field);
    message.add_int64(ValueTypeField::kType, Text(type));
    message.add_int64(ValueTypeField::kUnit, Text(unit));
  }

  uint64_t FunctionNumber(std::string_view name, std::string_view file) {
    const auto [at, is_new] = functions_.try_emplace({Text(Printable(name)), Text(Printable(file))},
                                                     functions_.size() + 1);
    if (is_new) {
      Message<FunctionField> message(profile_, ProfileField::kFunction);
      message.add_uint64(FunctionField::kId, at->second);
      message.add_int64(FunctionField::kName, at->first.first);
      message.add_int64(FunctionField::kSystemName, at->first.first);
      message.add_int64(FunctionField::kFilename, at->first.second);
    }
    return at->second;
  }

  uint64_t MappingNumber(const Function& function, const profile::CodeLines& code) {
    const std::string& path = code.path.empty() ? function.image : code.path;
    const auto [at, is_new] =
        mapping_index_.try_emplace({path, code.build_id}, mappings_.size() + 1);
    if (is_new) mappings_.push_back({path, code.build_id});
    Mapping& mapping = mappings_.at(at->second - 1);
    mapping.has_inlined = mapping.has_inlined || code.inlined.size() > 1;
    return at->second;
  }

  // Returns the location of a frame that is of no file: why Xen ran, or a root.
  uint64_t NamedLocation(std::string_view name) {
    const uint64_t function = FunctionNumber(name, "");
    const auto [at, is_new] = named_locations_.try_emplace(function, last_location_ + 1);
    if (is_new) PutLocation(/*mapping=*/0, /*address=*/0, {{function, 0}});
    return at->second;
  }

  uint64_t LocationNumber(const ProfileRow& row, const StackFrame& frame) {
    if (frame.kind != StackFrame::Kind::kFunction)
      return NamedLocation(FrameNameOf(report_, frame));
    const AddressSpaceId space = frame.mode == Mode::kUser ? row.process : AddressSpaceId{};
    const uint16_t domain = frame.mode == Mode::kXen ? 0 : row.domain.value;
    const auto [at, is_new] = locations_.try_emplace(
        {domain, frame.mode, space.value, frame.function.value, frame.address}, last_location_ + 1);
    if (!is_new) return at->second;
    const Function& function = report_.function_of(frame.function);
    profile::CodeLines code;
    if (function.unresolved.empty()) {
      code = report_.lines_of(row.domain, frame.mode, space, frame.address);
    }
    const uint64_t mapping = MappingNumber(function, code);
    // a location's functions are put before the location
    std::vector<std::pair<uint64_t, uint32_t>> lines;
    for (const Frame& inlined : code.inlined) {
      // The function that holds the inlined ones has one name everywhere: the name in the symbol
      // table.
      const bool outermost = &inlined == &code.inlined.back();
      lines.emplace_back(FunctionNumber(outermost ? function.name : inlined.function,
                                        inlined.call_site_or_line.file),
                         inlined.call_site_or_line.line);
    }
    if (lines.empty()) lines.emplace_back(FunctionNumber(function.name, ""), 0);
    PutLocation(mapping, frame.address, lines);
    mapping_of_location_[at->second] = mapping;
    return at->second;
  }

  // Puts the next location, with the numbers of its functions and their lines.
  void PutLocation(uint64_t mapping, Address address,
                   const std::vector<std::pair<uint64_t, uint32_t>>& lines) {
    Message<LocationField> message(profile_, ProfileField::kLocation);
    message.add_uint64(LocationField::kId, ++last_location_);
    message.add_uint64(LocationField::kMappingId, mapping);
    message.add_uint64(LocationField::kAddress, address);
    for (const auto& [number, line] : lines) {
      Message<LineField> part(message, LocationField::kLine);
      part.add_uint64(LineField::kFunctionId, number);
      part.add_int64(LineField::kLine, line);
    }
  }

  void PutLabel(Message<SampleField>& sample, std::string_view key, std::string_view value) {
    Message<LabelField> label(sample, SampleField::kLabel);
    label.add_int64(LabelField::kKey, Text(key));
    label.add_int64(LabelField::kStr, Text(Printable(value)));
  }

  void PutLabels(const ProfileRow& row, Message<SampleField>& sample) {
    for (const Dimension dimension : report_.by) {
      switch (dimension) {
        case Dimension::kStack:
        case Dimension::kAddress:
        case Dimension::kFunction:
        case Dimension::kImage:
          break;  // the locations have these
        case Dimension::kExit:
          if (row.exit.kind == ContextKind::kExit) {
            PutLabel(sample, "state", "exit");
            PutLabel(sample, "exit", ContextName(report_, row.exit));
          } else {
            PutLabel(sample, "state", ContextName(report_, row.exit));
          }
          break;
        case Dimension::kProcess:
          if (row.process.value == 0 && row.process_of_thread.empty()) break;
          [[fallthrough]];
        default:
          PutLabel(sample, ToString(dimension), DimensionText(report_, row, dimension));
      }
    }
  }

  void PutSample(const ProfileRow& row) {
    std::vector<int64_t> values = {samples_.Next(row.samples)};
    if (report_.is_time) {
      values.push_back(cycles_.Next(row.cycles));
      values.push_back(nanoseconds_.Next(Nanoseconds(row.cycles)));
    }
    if (std::ranges::all_of(values, [](int64_t value) { return value == 0; })) return;
    std::vector<uint64_t> locations;
    for (const StackFrame& frame : report_.result.stacks.at(row.stack)) {
      locations.push_back(LocationNumber(row, frame));
    }
    if (!locations.empty()) AddWeight(locations.front(), std::abs(row.samples));
    const std::vector<Dimension> innermost_first(roots_.rbegin(), roots_.rend());
    for (const Dimension root : innermost_first) {
      locations.push_back(NamedLocation(DimensionText(report_, row, root)));
    }
    Message<SampleField> sample(profile_, ProfileField::kSample);
    sample.add_packed_uint64(SampleField::kLocationId, locations.begin(), locations.end());
    sample.add_packed_int64(SampleField::kValue, values.begin(), values.end());
    PutLabels(row, sample);
  }

  void AddWeight(uint64_t location, double weight) {
    const auto mapping = mapping_of_location_.find(location);
    if (mapping != mapping_of_location_.end()) mappings_[mapping->second - 1].weight += weight;
  }

  // Puts the file with most samples first: readers call it the main one.
  void PutMappings() {
    std::vector<size_t> order(mappings_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [this](size_t i) { return mappings_[i].weight; });
    for (const size_t i : order) {
      const Mapping& mapping = mappings_[i];
      Message<MappingField> message(profile_, ProfileField::kMapping);
      message.add_uint64(MappingField::kId, i + 1);
      message.add_int64(MappingField::kFilename, Text(Printable(mapping.path)));
      message.add_int64(MappingField::kBuildId, Text(mapping.build_id));
      // The flags are set even where nothing is known: pprof would otherwise look addresses up in
      // files of this machine, as if the files had been loaded at 0.
      message.add_bool(MappingField::kHasFunctions, true);
      message.add_bool(MappingField::kHasFilenames, true);
      message.add_bool(MappingField::kHasLineNumbers, true);
      message.add_bool(MappingField::kHasInlineFrames, mapping.has_inlined);
    }
  }

  const ProfileReport& report_;
  const ProfileSelection& selection_;
  const std::vector<Dimension>& roots_;
  std::string out_;
  Message<ProfileField> profile_;
  StringInterner texts_;
  absl::flat_hash_map<std::pair<int64_t, int64_t>, uint64_t> functions_;
  absl::flat_hash_map<LocationKey, uint64_t> locations_;
  absl::flat_hash_map<uint64_t, uint64_t> named_locations_;  // by function
  absl::flat_hash_map<uint64_t, uint64_t> mapping_of_location_;
  uint64_t last_location_ = 0;
  absl::flat_hash_map<std::pair<std::string, std::string>, uint64_t> mapping_index_;
  std::vector<Mapping> mappings_;
  CumulativeRounder samples_;
  CumulativeRounder cycles_;
  CumulativeRounder nanoseconds_;
};

}  // namespace

absl::StatusOr<std::string> ProfilePprof(const ProfileReport& report,
                                         const ProfileSelection& selection,
                                         const std::vector<Dimension>& roots) {
  return PprofWriter(report, selection, roots).Write();
}

}  // namespace xenoscope::report
