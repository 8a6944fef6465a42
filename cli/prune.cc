// xenoscope prune: takes slices, or the names of a domain, out of a store.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/store_source.h"
#include "store/bounded_text.h"
#include "store/store.h"

namespace xenoscope::cli {
namespace {

struct Options {
  StoreOptions store;
  std::string domain;  // empty: whole slices
};

bool SelectsAll(const store::Selection& selection) {
  const store::Selection all;
  return selection.hosts.empty() && selection.since_ns == all.since_ns &&
         selection.until_ns == all.until_ns;
}

absl::Status Prune(const Options& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store,
                             store::OpenStore(options.store.url, store::Access::kWrite));
  if (options.domain.empty()) {
    XENOSCOPE_ASSIGN_OR_RETURN(const uint64_t removed, store->Remove(options.store.selection));
    fmt::print(stderr, "{}: slices removed: {}\n", options.store.url, removed);
    return absl::OkStatus();
  }
  XENOSCOPE_ASSIGN_OR_RETURN(
      const uint64_t having,
      store->EraseDomain(options.store.selection, store::BoundedName(options.domain)));
  fmt::print(stderr, "{}: slices in which the names of {} were removed: {}\n", options.store.url,
             options.domain, having);
  return absl::OkStatus();
}

}  // namespace

void AddPrune(Command program, CommandAction& run) {
  auto options = std::make_shared<Options>();
  Command command =
      program.AddSubcommand("prune", "Remove old slices, or the names of a domain, from a store");
  command
      .AddOption("URL", options->store.url, "Store: sqlite:FILE or clickhouse://HOST:PORT/DATABASE")
      .Required();
  command
      .AddOption("--domain", options->domain,
                 "Keep the slices, but remove the name of this domain and of its images and "
                 "functions: its time stays, as that of a domain '(removed 17)'")
      .ValueName("NAME");
  AddSliceOptions(command, options->store);
  command.SetFooter(
      "Examples:\n"
      "  xenoscope prune sqlite:fleet.db --until 30d         # what is older than 30 days\n"
      "  xenoscope prune sqlite:fleet.db --host web7         # a host that is gone\n"
      "  xenoscope prune sqlite:fleet.db --domain customer1  # a tenant who has left");
  command.SetCallback([options, &run] {
    if (options->domain.empty() && SelectsAll(options->store.selection)) {
      ThrowUsageError(
          "say what to remove: --until, --since, --host or --domain; to remove everything, remove "
          "the file");
    }
    run = [options] { return Prune(*options); };
  });
}

}  // namespace xenoscope::cli
