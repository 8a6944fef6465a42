#include "store/row_order.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>

namespace xenoscope::store {
namespace {

// It is monotone: a share stays in its interval.
double Rounded(double share) {
  constexpr int kBits = 40;
  int exponent = 0;
  const double mantissa = std::frexp(share, &exponent);
  return std::ldexp(std::round(std::ldexp(mantissa, kBits)), exponent - kBits);
}

}  // namespace

void OrderByNames(const std::vector<std::string>& domains, const std::vector<std::string>& exits,
                  std::vector<correlate::ProfileRow>& rows) {
  for (correlate::ProfileRow& row : rows) {
    row.share = Rounded(row.share);
    row.interval = {Rounded(row.interval.low), Rounded(row.interval.high)};
  }
  std::ranges::sort(rows, {}, [&](const correlate::ProfileRow& row) {
    const bool is_exit = row.exit.kind == correlate::ContextKind::kExit;
    const std::string_view exit = is_exit ? exits[row.exit.reason] : std::string_view();
    return std::tuple(std::string_view(row.host), std::string_view(domains[row.domain.value]),
                      row.vcpu.value, row.mode, row.exit.kind, row.exit.nested, exit,
                      std::string_view(row.image), std::string_view(row.function));
  });
}

}  // namespace xenoscope::store
