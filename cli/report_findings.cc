#include "cli/report_findings.h"

#include <utility>

namespace xenoscope::cli {

FindingsPass::FindingsPass(const ProfileOptions& options, bool all)
    : whole_(!options.from && !options.to),
      all_(all),
      trace_(findings::TraceAnalyses(all ? findings::HypercallRule::kOn
                                         : findings::HypercallRule::kOff)) {}

void FindingsPass::AddTo(const ProfileSource& source, report::ProfileReport& out) {
  analysis::TraceMetadata metadata;
  metadata.dialect.vendor = out.vendor;
  metadata.clock = out.clock;
  if (all_) metadata.resolver = &source.symbols();
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
