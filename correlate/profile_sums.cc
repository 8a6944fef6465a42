#include "correlate/profile_sums.h"

#include <array>

namespace xenoscope::correlate {
namespace {

constexpr std::array kByDomain = {Dimension::kDomain};

constexpr uint32_t kFirstTotal = uint32_t{1} << 31;

}  // namespace

ProfileSums::ProfileSums(std::span<const Dimension> by)
    : rows(by), totals(by, kFirstTotal), domains(kByDomain) {}

}  // namespace xenoscope::correlate
