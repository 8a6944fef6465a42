#include "cli/report_findings.h"

#include <utility>

namespace xenoscope::cli {

FindingsPass::FindingsPass(const ProfileOptions& options, FindingsDetail detail)
    : whole_(!options.from && !options.to),
      detail_(detail),
      trace_(findings::TraceAnalyses(detail == FindingsDetail::kQuick
                                         ? findings::HypercallRule::kOff
                                         : findings::HypercallRule::kOn)) {}

void FindingsPass::AddTo(const ProfileSource& source, report::ProfileReport& out) {
  analysis::TraceMetadata metadata;
  metadata.dialect.vendor = out.vendor;
  metadata.clock = out.clock;
  if (detail_ == FindingsDetail::kAll) metadata.resolver = &source.symbols();
  document_ = trace_.Describe(std::move(metadata));
  findings::Results results{.sample_set = &out,
                            .profile = &out,
                            .by = out.by,
                            .info = source.info(),
                            .clock = out.clock,
                            .domain_name = out.domain_name};
  if (document_) {
    results.trace = &*document_;
    results.traced = trace_.range().Length();
  }
  out.findings = findings::Find(results);
}

}  // namespace xenoscope::cli
