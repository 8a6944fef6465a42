// The findings about machines that lack one thing or another.
#include "sampler/host_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "sampler/agent/fd_channel.h"
#include "sampler/sandbox.h"
#include "tests/unit/sampler/agent/fake_agent.h"

namespace xenoscope::sampler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

HostFacts Dom0() {
  HostFacts facts;
  facts.xen_version = "4.17.7";
  facts.pv = true;
  facts.guests = 2;
  facts.pcpus = 4;
  facts.xenoprof = "x86-64/family15h";
  facts.agents = {"web (xenoscope 0.1.0)", "db (xenoscope 0.1.0)"};
  facts.xen_symbols = facts.kernel_symbols = true;
  return facts;
}

// Returns "yes: uses xenoprof"; "-" when there is no finding.
std::string FindingOn(const HostFacts& facts, const std::string& subject) {
  for (const Finding& finding : Diagnose(facts)) {
    if (finding.subject == subject)
      return std::string(ToString(finding.verdict)) + ": " + finding.text;
  }
  return "-";
}

TEST(HostCheck, AllSourcesWorkInCompleteDom0) {
  for (const Finding& finding : Diagnose(Dom0())) {
    EXPECT_EQ(finding.verdict, Verdict::kYes) << finding.subject;
  }
  EXPECT_EQ(FindingOn(Dom0(), "recording"), "yes: this is dom0 of Xen 4.17.7");
  EXPECT_EQ(FindingOn(Dom0(), "record"), "yes: uses xenoprof, with the trace");
}

TEST(HostCheck, ReportsAgents) {
  HostFacts facts = Dom0();
  EXPECT_EQ(FindingOn(facts, "agents"),
            "yes: `record --active` can have web (xenoscope 0.1.0), db (xenoscope 0.1.0)");
  facts.agents.clear();
  EXPECT_THAT(FindingOn(facts, "agents"), HasSubstr("partly: no domain runs an agent"));
  facts.other = PreconditionError("another recording goes on");  // and has the agents
  EXPECT_EQ(FindingOn(facts, "agents"), "-");
}

TEST(HostCheck, ReportsVpmu) {
  HostFacts facts = Dom0();
  EXPECT_EQ(FindingOn(facts, "vPMU"), "-");  // xenoprof is better
  facts.xenoprof = UnimplementedError("this Xen has no xenoprof");
  EXPECT_EQ(FindingOn(facts, "vPMU"),
            "partly: it could sample Xen and all domains in place of xenoprof: boot Xen with "
            "vpmu=1 dom0_max_vcpus=4 dom0_vcpus_pin and without watchdog, then write all to "
            "/sys/hypervisor/pmu/pmu_mode before any guest starts");
  facts.vpmu = {.mode = "hv", .pcpus = 4, .vcpus = 2};
  EXPECT_EQ(FindingOn(facts, "vPMU"),
            "yes: mode hv: perf samples dom0 and Xen's work for it; for all domains write all to "
            "/sys/hypervisor/pmu/pmu_mode before any guest starts");
  EXPECT_EQ(FindingOn(facts, "perf"),
            "yes: samples dom0 and Xen's work for it, not the guests, by hardware counters");
  facts.vpmu.mode = "all";
  EXPECT_THAT(FindingOn(facts, "vPMU"),
              HasSubstr("partly: mode all: perf samples Xen and all domains; dom0 has 2 vCPUs"));
  EXPECT_EQ(FindingOn(facts, "perf"), "yes: samples Xen and all domains, by hardware counters");
}

// The agents of domains 1 to 3 are a1, a2 and a3; domain 0 is dom0.
class FakeDirectory final : public DomainDirectory {
 public:
  absl::StatusOr<std::vector<recording::DomainInfo>> List() override {
    std::vector<recording::DomainInfo> domains;
    for (uint16_t id = 0; id < 4; ++id) {
      recording::DomainInfo& domain = domains.emplace_back();
      domain.id = DomainId{id};
      domain.name = "a" + std::to_string(id);
    }
    return domains;
  }
  std::set<DomainId> Ids() override { return {}; }
  std::optional<uint32_t> DeviceModelOf(DomainId /*id*/) override { return std::nullopt; }
  bool OffersAgent(DomainId /*id*/) override { return false; }
};

TEST(HostCheck, ReadsAgentsInSandboxes) {
  std::vector<std::thread> agents;
  std::atomic<int> said_bye = 0;
  const auto connect = [&](DomainId id) -> absl::StatusOr<std::unique_ptr<Channel>> {
    EXPECT_NE(id, kDom0);
    if (id == DomainId{1}) return NotFoundError("it offers no channel");
    int fds[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    agents.emplace_back([&said_bye, id, channel = std::make_shared<FdChannel>(fds[1])] {
      agent::FakeAgent guest(ReadTsc);
      guest.hello.program = "an \33[31magent";
      if (id == DomainId{2}) guest.hello.major = 9;
      agent::Link link(*channel);
      if (guest.Play(link, std::chrono::seconds(20))) ++said_bye;
    });
    return std::make_unique<FdChannel>(fds[0]);
  };
  FakeDirectory directory;
  const std::chrono::nanoseconds before = Sandbox::CpuTime();
  EXPECT_THAT(ProbeAgents(directory, connect), ElementsAre("a3 (an ?[31magent)"));
  EXPECT_GT(Sandbox::CpuTime(), before);
  for (std::thread& thread : agents) thread.join();
  EXPECT_EQ(said_bye, 1);
}

TEST(HostCheck, ReportsRemainsOfKilledRecording) {
  HostFacts facts = Dom0();
  facts.stale_xenoprof = facts.stale_trace = true;
  EXPECT_THAT(FindingOn(facts, "xenoprof"), HasSubstr("yes: left running by a killed recording"));
  EXPECT_THAT(FindingOn(facts, "trace"), HasSubstr("yes: tracing is still on"));
  EXPECT_THAT(FindingOn(facts, "trace"), HasSubstr("xentrace -T 1 /dev/null"));
}

TEST(HostCheck, SaysThatItRestoredTheWeight) {
  HostFacts facts = Dom0();
  EXPECT_EQ(FindingOn(facts, "weight"), "-");
  facts.weight = std::optional<std::string>("restored dom0's weight of 256");
  EXPECT_EQ(FindingOn(facts, "weight"), "yes: restored dom0's weight of 256");
  facts.weight = PermissionError("cannot restore dom0's weight");
  EXPECT_EQ(FindingOn(facts, "weight"), "partly: cannot restore dom0's weight");
}

TEST(HostCheck, ReportsOnlyPrivcmdOutsideDom0) {
  HostFacts facts;
  facts.privcmd = PreconditionError("this machine does not run on Xen");
  EXPECT_EQ(Diagnose(facts).size(), 2U);
  EXPECT_EQ(FindingOn(facts, "recording"), "no: this machine does not run on Xen");
  EXPECT_THAT(FindingOn(facts, "reports"), HasSubstr("yes: "));
}

TEST(HostCheck, OffersPerfWithoutXen) {
  HostFacts facts;
  facts.dom0 = false;
  facts.privcmd = PreconditionError("this machine does not run on Xen");
  facts.perf = false;
  EXPECT_EQ(FindingOn(facts, "recording of Xen"), "no: this machine does not run on Xen");
  EXPECT_THAT(FindingOn(facts, "perf"), HasSubstr("yes: samples this Linux"));
  EXPECT_THAT(FindingOn(facts, "perf"), HasSubstr("no performance counter counts here"));
  EXPECT_EQ(FindingOn(facts, "record"), "partly: uses perf, without a trace");
  EXPECT_THAT(FindingOn(facts, "call chains"),
              HasSubstr("yes: perf has --call-graph fp and dwarf;"));
  facts.branch_records = true;
  EXPECT_EQ(FindingOn(facts, "call chains"), "yes: perf has --call-graph fp, dwarf and lbr");
  facts.perf = PermissionError("may not");
  EXPECT_EQ(FindingOn(facts, "perf"), "no: may not");
  EXPECT_EQ(FindingOn(facts, "record"), "no: no source works here");
}

TEST(HostCheck, OffersPollingWithoutXenoprof) {
  HostFacts facts = Dom0();
  facts.xenoprof = UnimplementedError("this Xen has no xenoprof");
  EXPECT_EQ(FindingOn(facts, "xenoprof"), "no: this Xen has no xenoprof");
  EXPECT_EQ(FindingOn(facts, "record"),
            "yes: uses vcpu for the guests and perf for dom0, with the trace");
  facts.perf = PermissionError("may not");
  EXPECT_EQ(FindingOn(facts, "record"), "yes: uses vcpu, with the trace");
  facts.guests = 0;
  EXPECT_THAT(FindingOn(facts, "vcpu"), HasSubstr("partly: "));
  EXPECT_EQ(FindingOn(facts, "record"), "partly: uses the trace alone");
}

TEST(HostCheck, PvhDom0HasNoXenoprof) {
  HostFacts facts = Dom0();
  facts.pv = false;
  EXPECT_THAT(FindingOn(facts, "xenoprof"), HasSubstr("no: dom0 is not a PV domain"));
  EXPECT_THAT(FindingOn(facts, "record"),
              HasSubstr("yes: uses vcpu for the guests and perf for dom0"));
}

TEST(HostCheck, WarnsAboutPollingOnOnePcpu) {
  HostFacts facts = Dom0();
  facts.pcpus = 1;
  EXPECT_THAT(FindingOn(facts, "vcpu"), HasSubstr("partly: on this host's single pCPU"));
}

TEST(HostCheck, NoTraceWithoutXentraceOrDevice) {
  HostFacts facts = Dom0();
  facts.xentrace = NotFoundError("install xen-utils");
  EXPECT_EQ(FindingOn(facts, "trace"), "no: install xen-utils");
  EXPECT_EQ(FindingOn(facts, "record"), "partly: uses xenoprof, and needs --no-trace");
  facts = Dom0();
  facts.evtchn = PreconditionError("run `modprobe xen-evtchn`");
  EXPECT_EQ(FindingOn(facts, "trace"), "no: run `modprobe xen-evtchn`");
}

TEST(HostCheck, RecordsWithoutTraceWhenItIsInUse) {
  HostFacts facts = Dom0();
  facts.trace_free = PreconditionError("xentrace is running already (process 7)");
  EXPECT_EQ(FindingOn(facts, "trace"), "no: xentrace is running already (process 7)");
  EXPECT_EQ(FindingOn(facts, "record"), "partly: uses xenoprof, and needs --no-trace");
}

TEST(HostCheck, ReportsFatalFindingsFirst) {
  HostFacts facts = Dom0();
  facts.xenstore = PreconditionError("start xenstored");
  EXPECT_EQ(FindingOn(facts, "xenstore"), "no: start xenstored");
  EXPECT_THAT(FindingOn(facts, "record"), HasSubstr("no: "));
  facts = Dom0();
  facts.other = PreconditionError("another xenoscope is recording");
  EXPECT_EQ(FindingOn(facts, "session"), "partly: another xenoscope is recording");
  EXPECT_THAT(FindingOn(facts, "record"), HasSubstr("no: "));
}

TEST(HostCheck, RemainsOfKilledRecordingAreNoFailure) {
  HostFacts facts = Dom0();
  facts.stale_xenoprof = true;
  EXPECT_THAT(FindingOn(facts, "xenoprof"), HasSubstr("the next `record` stops"));
  EXPECT_EQ(FindingOn(facts, "record"), "yes: uses xenoprof, with the trace");
}

TEST(HostCheck, MissingSymbolsHaveARemedy) {
  HostFacts facts = Dom0();
  facts.xen_symbols = facts.kernel_symbols = false;
  EXPECT_THAT(FindingOn(facts, "Xen's symbols"), HasSubstr("mount -t xenfs"));
  EXPECT_THAT(FindingOn(facts, "dom0's symbols"), HasSubstr("kptr_restrict"));
}

}  // namespace
}  // namespace xenoscope::sampler
