#include "correlate/profile_sums.h"

#include <array>

namespace xenoscope::correlate {
namespace {

constexpr std::array kByDomain = {Dimension::kDomain};

}  // namespace

ProfileSums::ProfileSums(std::span<const Dimension> by)
    : rows(by), totals(by), domains(kByDomain) {}

}  // namespace xenoscope::correlate
