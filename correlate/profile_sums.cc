#include "correlate/profile_sums.h"

#include <array>

namespace xenoscope::correlate {
namespace {

constexpr std::array kByDomain = {Dimension::kDomain};

}  // namespace

ProfileSums::ProfileSums(std::span<const Dimension> by)
    : rows(by), totals(by, FirstUnion(1)), domains(kByDomain) {}

}  // namespace xenoscope::correlate
