// xenoscope prune: takes slices, or the names of a domain, out of a store, or joins slices.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/store_source.h"
#include "cli/time_of_day.h"
#include "store/bounded_text.h"
#include "store/store.h"

namespace xenoscope::cli {
namespace {

struct PruneOptions {
  StoreOptions store;
  std::string domain;   // empty: whole slices
  int64_t join_ns = 0;  // the intervals whose slices become one; 0: slices are removed
};

bool SelectsAll(const store::Selection& selection) {
  const store::Selection all;
  return selection.hosts.empty() && selection.since_ns == all.since_ns &&
         selection.until_ns == all.until_ns;
}

absl::Status Prune(const PruneOptions& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store,
                             store::OpenStore(options.store.url, store::Access::kWrite));
  if (options.join_ns > 0) {
    XENOSCOPE_ASSIGN_OR_RETURN(const store::Store::Joined joined,
                               store->Join(options.store.selection, options.join_ns));
    fmt::print(stderr, "{}: slices joined: {} became {}\n", options.store.url, joined.from,
               joined.to);
    return absl::OkStatus();
  }
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
  auto options = std::make_shared<PruneOptions>();
  Command command =
      program.AddSubcommand("prune", "Remove or join old slices, or remove the names of a domain");
  command
      .AddOption("URL", options->store.url, "Store: sqlite:FILE or clickhouse://HOST:PORT/DATABASE")
      .Required();
  command
      .AddOption("--domain", options->domain,
                 "Keep the slices, but remove the name of this domain and of its images and "
                 "functions: its time stays, as that of a domain '(removed 17)'")
      .ValueName("NAME");
  command
      .AddWordOption(
          "--join",
          [options](const std::string& text) {
            options->join_ns = ParseLength("--join", text);
            if (options->join_ns > store::kMaxSliceNs) {
              ThrowUsageError("--join", "takes at most 1d");
            }
          },
          "Remove nothing, but make one slice of each host's slices that begin in the same "
          "interval "
          "of this length, such as 1h: they need less space, and times within it cannot be chosen "
          "any more")
      .ValueName("TIME")
      .Excludes("--domain");
  AddSliceOptions(command, options->store);
  command.SetFooter(
      "Examples:\n"
      "  xenoscope prune sqlite:fleet.db --until 30d         # what is older than 30 days\n"
      "  xenoscope prune sqlite:fleet.db --until 2d --join 1h  # minutes become hours\n"
      "  xenoscope prune sqlite:fleet.db --host web7         # a host that is gone\n"
      "  xenoscope prune sqlite:fleet.db --domain customer1  # a tenant who has left");
  command.SetCallback([options, &run] {
    if (options->domain.empty() && options->join_ns == 0 && SelectsAll(options->store.selection)) {
      ThrowUsageError(
          "say what to remove: --until, --since, --host or --domain; to remove everything, remove "
          "the file");
    }
    run = [options] { return Prune(*options); };
  });
}

}  // namespace xenoscope::cli
