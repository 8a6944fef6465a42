#include "cli/stat_guests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "cli/stat_counters.h"
#include "sampler/agent/vchan_channel.h"
#include "sampler/xen/host.h"

namespace xenoscope::cli {

using profile::CountedPart;
using sampler::CounterReading;
using sampler::GuestCounters;
using std::chrono::steady_clock;

namespace {

constexpr std::chrono::minutes kLongestSilence{1};

void NoteFailure(const GuestCounters& counters, const absl::Status& why) {
  const recording::DomainInfo& domain = counters.domain();
  fmt::print(stderr, "note: {} is not counted from here on: {}\n",
             DomainLabel(domain.id, domain.name), Message(why));
}

}  // namespace

absl::StatusOr<StatGuests> StatGuests::Open(const std::vector<std::string>& guests,
                                            const recording::RecordingInfo& host,
                                            const std::vector<std::string>& texts, size_t events) {
  StatGuests opened(events);
  for (const std::string& name : guests) {
    XENOSCOPE_ASSIGN_OR_RETURN(const DomainId id, sampler::FindDomain(host.domains, name));
    const recording::DomainInfo& domain =
        *std::ranges::find(host.domains, id, &recording::DomainInfo::id);
    if (id == kDom0) return InvalidError("--active {}: dom0 is counted anyway; leave it out", name);
    auto counters = GuestCounters::Open(domain, texts, events, sampler::ConnectVchan,
                                        {.read_tsc = sampler::ReadTsc});
    if (!counters.ok()) return InContext(counters.status(), "--active " + name);
    opened.guests_.push_back({*std::move(counters), false});
  }
  return opened;
}

void StatGuests::Start() {
  for (Guest& guest : guests_) {
    const absl::Status started = guest.counters.Start();
    guest.failed = !started.ok();
    if (guest.failed) NoteFailure(guest.counters, started);
  }
  // To greet an agent takes up to a second. What the others have counted meanwhile is not of the
  // stretch that begins now.
  Next();
}

std::vector<CountedPart> StatGuests::Next() {
  std::vector<CountedPart> parts;
  for (Guest& guest : guests_) {
    const DomainId domain = guest.counters.domain().id;
    absl::StatusOr<std::vector<CounterReading>> counts = std::vector<CounterReading>();
    if (!guest.failed) counts = guest.counters.Next();
    if (!counts.ok()) {
      guest.failed = true;
      NoteFailure(guest.counters, counts.status());
    }
    for (size_t event = 0; event < events_; ++event) {
      if (guest.failed || !guest.counters.obstacles()[event].empty()) {
        parts.push_back({.event = event, .domain = domain, .vcpu = {}, .counted = false});
      }
    }
    if (guest.failed) continue;
    for (const CounterReading& counted : *counts) parts.push_back(ToPart(counted, domain));
  }
  last_call_ = steady_clock::now();
  return parts;
}

void StatGuests::KeepAlive() {
  if (steady_clock::now() - last_call_ < kLongestSilence) return;
  for (Guest& guest : guests_) {
    if (!guest.failed) guest.counters.KeepAlive();
  }
  last_call_ = steady_clock::now();
}

}  // namespace xenoscope::cli
