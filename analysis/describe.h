// Puts together what analyses describe.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/document.h"
#include "base/ids.h"

namespace xenoscope::analysis {

enum class DescribeOn : uint8_t { kOneThread, kAllThreads };

// Returns the document of the finished analyses, with the vCPUs `met` and the domains that an
// analysis adds.
Document DescribeAll(const std::vector<std::unique_ptr<Analysis>>& analyses,
                     const std::set<VcpuRef>& met, const TraceMetadata& metadata,
                     DescribeOn threads);

}  // namespace xenoscope::analysis
