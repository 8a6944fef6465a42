// Finds where KASLR put guests' kernels whose files are known but not their addresses.
#pragma once

#include <string>
#include <vector>

#include "correlate/placing/placed_sample.h"
#include "symbolizer/domain_symbols.h"

namespace xenoscope::profile {

// Takes all of `samples` and puts each domain's kernel where the addresses in kernel mode, at most
// 4096 different ones, say that it was. If a domain has fewer than 256, all of `further` is taken,
// too, unless it is null, for the domains that have samples. Returns what was found, or why nothing
// was, a sentence for each domain that has one. To be called before anything is resolved.
std::vector<std::string> FindKernelShifts(symbolizer::DomainSymbols& symbols,
                                          correlate::SampleSource& samples,
                                          correlate::SampleSource* further = nullptr);

}  // namespace xenoscope::profile
