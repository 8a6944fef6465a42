// A simulated Xen with the rules of its xenoprof (Xen 4.17, xen/common/xenoprof.c and
// xen/arch/x86/oprofile/nmi_int.c): states, errors, and the ways in which the real one crashes the
// host, which set Crash() instead.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "base/mode.h"
#include "sampler/xenoprof/sampling_clock.h"
#include "sampler/xenoprof/xenoprof_abi.h"
#include "sampler/xenoprof/xenoprof_calls.h"

namespace xenoscope::sampler {

class FakeXen final : public XenoprofCalls {
 public:
  enum class State { kIdle, kInitialized, kReserved, kReady, kProfiling };

  explicit FakeXen(std::map<uint16_t, int> vcpus_of_domains)
      : vcpus_(std::move(vcpus_of_domains)) {}

  // The properties of this Xen and this dom0.
  int init_error = 0;
  int reserve_error = 0;
  int get_buffer_error = 0;
  bool primary = true;
  int counters = 6;

  const std::string& Crash() const { return crash_; }
  State state() const { return state_; }
  const std::vector<XenoprofOp>& ops() const { return ops_; }
  const std::map<uint32_t, XenoprofCounter>& programmed() const { return programmed_; }
  bool AnythingMapped() const { return !mapped_.empty(); }
  bool AnythingShared() const { return !shared_.empty(); }
  // Returns whether Xen holds a domain that may be gone. dom0 is never gone: to be listed without
  // taking part, in a session that does not start, costs it a reference and nothing else.
  bool AnythingHeld() const {
    return std::ranges::any_of(
        held_, [](const auto& held) { return held.first != 0 && held.second != 0; });
  }

  // Simulates the end of a killed process: its mappings go, everything else stays.
  void ProcessDies(uint16_t domain = 0) {
    std::erase_if(mapped_, [&](uint16_t buffer) { return shared_.at(buffer) == domain; });
  }

  // Xen as a guest sees it.
  class Guest final : public XenoprofCalls {
   public:
    Guest(FakeXen& xen, uint16_t domain) : xen_(xen), domain_(domain) {}
    using XenoprofCalls::Call;
    int Call(XenoprofOp op, std::span<std::byte> argument) override {
      return xen_.CallFrom(domain_, op, argument);
    }
    absl::StatusOr<std::byte*> Map(uint64_t address, size_t size) override {
      return xen_.Map(address, size);
    }
    void Unmap(std::byte* at, size_t size) override { xen_.Unmap(at, size); }

   private:
    FakeXen& xen_;
    uint16_t domain_;
  };

  // Simulates an NMI while this vCPU runs: every counter has overflowed, as on QEMU.
  void Nmi(uint16_t domain, uint32_t vcpu, Mode mode, Address address) {
    if (!callback_) {
      if (clocked_) crash_ = "NMI without a handler";
      return;
    }
    if (!msrs_) {
      crash_ = "NMI handler finds its arrays freed";
      return;
    }
    if (!sampled_.contains(domain)) return;
    for (int event = 0; event < counters; ++event) {
      if (backtrace_depth_ > 0) Put(domain, vcpu, {kEscapeCode, 0, kTraceBegin, {}});
      Log(domain, vcpu, mode, address, static_cast<uint8_t>(event));
      for (size_t i = 0; i < std::min<size_t>(backtrace_depth_, frames.size()); ++i) {
        Put(domain, vcpu, {frames[i].second, static_cast<uint8_t>(frames[i].first), 0, {}});
      }
    }
  }
  // The callers of each sample.
  std::vector<std::pair<Mode, Address>> frames;
  int backtrace_error = 0;
  uint64_t backtrace_depth() const { return backtrace_depth_; }

  // Adds an entry, or loses it. Returns whether there was room.
  bool Put(uint16_t domain, uint32_t vcpu, const XenoprofEntry& entry) {
    XenoprofBuffer* const buffer = BufferOf(domain, vcpu);
    const uint32_t next = (buffer->event_head + 1) % buffer->event_size;
    if (next == buffer->event_tail) {
      ++buffer->lost_samples;
      return false;
    }
    auto* const at = reinterpret_cast<std::byte*>(buffer) + kEntriesOffset +
                     size_t{buffer->event_head} * sizeof entry;
    std::memcpy(at, &entry, sizeof entry);
    buffer->event_head = next;
    return true;
  }

  void Log(uint16_t domain, uint32_t vcpu, Mode mode, Address address, uint8_t event) {
    if (!Put(domain, vcpu, {address, static_cast<uint8_t>(mode), event, {}})) return;
    XenoprofBuffer* const buffer = BufferOf(domain, vcpu);
    ++(mode == Mode::kXen      ? buffer->xen_samples
       : mode == Mode::kKernel ? buffer->kernel_samples
                               : buffer->user_samples);
  }

  void ClockRuns(bool runs) { clocked_ = runs; }

  using XenoprofCalls::Call;
  int Call(XenoprofOp op, std::span<std::byte> argument) override {
    ops_.push_back(op);
    return CallFrom(0, op, argument);
  }
  int CallFrom(uint16_t caller, XenoprofOp op, std::span<std::byte> argument) {
    const bool anybody = op == XenoprofOp::kInit || op == XenoprofOp::kGetBuffer ||
                         op == XenoprofOp::kEnableVirq || op == XenoprofOp::kDisableVirq;
    if (init_error != 0) return init_error;
    if (!anybody && (!is_primary_ || caller != 0)) return -EPERM;
    switch (op) {
      case XenoprofOp::kInit:
        return Init(caller, argument);
      case XenoprofOp::kGetBuffer:
        return GetBuffer(caller, argument);
      case XenoprofOp::kResetActiveList:
        // This is a copy, because Leave clears the list after the last one.
        for (const Active& active : std::vector(active_)) {
          if (active.ready) Leave(active.domain);
        }
        active_.clear();
        activated_ = 0;
        return 0;
      case XenoprofOp::kResetPassiveList:
        UnsharePassive();
        return 0;
      case XenoprofOp::kSetActive:
        return SetActive(argument);
      case XenoprofOp::kSetPassive:
        return SetPassive(argument);
      case XenoprofOp::kSetBacktrace:
        if (backtrace_error != 0) return backtrace_error;
        if (argument.size() != sizeof backtrace_depth_) return -EFAULT;
        std::memcpy(&backtrace_depth_, argument.data(), sizeof backtrace_depth_);
        return 0;
      case XenoprofOp::kReserveCounters:
        if (state_ != State::kInitialized) return -EPERM;
        if (reserve_error != 0) return reserve_error;
        msrs_ = true;
        state_ = State::kReserved;
        return 0;
      case XenoprofOp::kCounter: {
        if (state_ != State::kReserved || active_.empty()) return -EPERM;
        XenoprofCounter counter;
        std::memcpy(&counter, argument.data(), sizeof counter);
        if (counter.ind >= static_cast<uint32_t>(counters)) return -EINVAL;
        programmed_[counter.ind] = counter;
        return 0;
      }
      case XenoprofOp::kSetupEvents:
        if (state_ != State::kReserved) return -EPERM;
        state_ = State::kReady;
        return 0;
      case XenoprofOp::kEnableVirq:
        return EnableVirq(caller);
      case XenoprofOp::kStart:
        if (state_ != State::kReady || activated_ != active_.size()) return -EPERM;
        state_ = State::kProfiling;
        return 0;
      case XenoprofOp::kStop:
        if (state_ != State::kProfiling) return -EPERM;
        state_ = State::kReady;
        return 0;
      case XenoprofOp::kDisableVirq:
        if (state_ == State::kProfiling && sampled_.contains(caller)) return -EPERM;
        if (!Leave(caller)) return -EPERM;
        Unshare(caller);
        return 0;
      case XenoprofOp::kReleaseCounters:
        if (state_ != State::kReserved && state_ != State::kReady) return -EPERM;
        if (clocked_) crash_ = "release_counters while NMIs come";
        msrs_ = false;
        callback_ = false;
        state_ = State::kInitialized;
        UnsharePassive();
        return 0;
      case XenoprofOp::kShutdown:
        if (state_ != State::kInitialized) return -EPERM;
        is_primary_ = false;
        active_.clear();  // without releasing any domain
        activated_ = 0;
        return 0;
    }
    return -EINVAL;
  }

  absl::StatusOr<std::byte*> Map(uint64_t address, size_t) override {
    const auto domain = static_cast<uint16_t>(address >> 32);
    if (!shared_.contains(domain)) return InternalError("mapped what is not shared");
    mapped_.insert(domain);
    return memory_.at(domain).data();
  }
  void Unmap(std::byte* at, size_t) override {
    for (auto& [domain, memory] : memory_) {
      if (memory.data() != at) continue;
      if (!shared_.contains(domain)) crash_ = "unmapped after its pages were taken back";
      mapped_.erase(domain);
    }
  }

 private:
  static constexpr size_t kPage = 4096;
  uint64_t backtrace_depth_ = 0;  // an unsigned long, as in Xen

  struct Active {
    int domain;  // -1: the domain has left
    bool ready;
  };

  int SetActive(std::span<std::byte> argument) {
    if (state_ != State::kInitialized) return -EPERM;
    uint16_t domain = 0;
    std::memcpy(&domain, argument.data(), sizeof domain);
    if (!vcpus_.contains(domain)) return -EINVAL;
    ++held_[domain];
    active_.push_back({domain, false});
    return 0;
  }

  std::vector<Active>::iterator Find(int domain) {
    return std::ranges::find(active_, domain, &Active::domain);
  }

  // reset_active: a domain leaves the list, and its place stays. Returns whether it was there.
  bool Leave(int domain) {
    const auto found = Find(domain);
    if (found == active_.end() || !memory_.contains(static_cast<uint16_t>(domain))) return false;
    *found = {-1, false};
    sampled_.erase(static_cast<uint16_t>(domain));
    --held_[static_cast<uint16_t>(domain)];
    if (--activated_ == 0) active_.clear();
    return true;
  }

  int Init(uint16_t caller, std::span<std::byte> argument) {
    XenoprofInit init;
    init.num_events = counters;
    init.is_primary = primary && caller == 0 ? 1 : 0;
    std::string_view("x86-64/family15h").copy(init.cpu_type.data(), init.cpu_type.size() - 1);
    std::memcpy(argument.data(), &init, sizeof init);
    if (caller != 0) return 0;
    is_primary_ = primary;
    if (state_ == State::kReady || state_ == State::kReserved || state_ == State::kProfiling) {
      crash_ = "init in the middle of a session";
    }
    state_ = State::kInitialized;
    return 0;
  }

  // Fills in what get_buffer and set_passive both return, from `domain`'s buffers, which `with` may
  // then map.
  template <typename T>
  int Share(uint16_t domain, uint16_t with, T& answer) {
    if (mapped_.contains(domain) || shared_.contains(domain)) return -EBUSY;
    const int vcpus = vcpus_.at(domain);
    if (!memory_.contains(domain)) {  // once for the life of the domain
      const auto samples = static_cast<uint32_t>(answer.max_samples);
      sizes_[domain] = samples;
      const size_t size = 64 + (size_t{samples} - 1) * sizeof(XenoprofEntry);
      memory_[domain].resize((size * static_cast<size_t>(vcpus) + kPage - 1) / kPage * kPage);
      for (int i = 0; i < vcpus; ++i) {
        XenoprofBuffer* const buffer = BufferOf(domain, static_cast<uint32_t>(i));
        buffer->event_size = samples;
        buffer->vcpu_id = static_cast<uint32_t>(i);
      }
    }
    answer.nbuf = vcpus;
    answer.max_samples = static_cast<int32_t>(sizes_[domain]);
    answer.bufsize = static_cast<int32_t>(64 + (sizes_[domain] - 1) * sizeof(XenoprofEntry));
    answer.buf_gmaddr = uint64_t{domain} << 32;
    shared_[domain] = with;
    return 0;
  }

  int GetBuffer(uint16_t caller, std::span<std::byte> argument) {
    if (get_buffer_error != 0) return get_buffer_error;
    XenoprofGetBuffer get;
    std::memcpy(&get, argument.data(), sizeof get);
    const int result = Share(caller, caller, get);
    std::memcpy(argument.data(), &get, sizeof get);
    return result;
  }

  int SetPassive(std::span<std::byte> argument) {
    if (state_ != State::kInitialized) return -EPERM;
    XenoprofPassive passive;
    std::memcpy(&passive, argument.data(), sizeof passive);
    if (!vcpus_.contains(passive.domain_id)) return -EINVAL;
    const int result = Share(passive.domain_id, 0, passive);
    std::memcpy(argument.data(), &passive, sizeof passive);
    if (result == 0) {
      passive_.insert(passive.domain_id);
      sampled_.insert(passive.domain_id);
    }
    return result;
  }

  int EnableVirq(uint16_t caller) {
    if (caller == 0) {
      if (state_ != State::kReady) return -EPERM;
      callback_ = true;
      for (const uint16_t domain : passive_) Empty(domain);
    }
    if (memory_.contains(caller)) Empty(caller);
    const auto found = Find(caller);
    if (found == active_.end() || !memory_.contains(caller)) return -EPERM;
    found->ready = true;
    sampled_.insert(caller);
    ++activated_;  // even for a domain that has taken part already
    return 0;
  }

  void Empty(uint16_t domain) {
    for (int i = 0; i < vcpus_.at(domain); ++i) {
      XenoprofBuffer* const buffer = BufferOf(domain, static_cast<uint32_t>(i));
      buffer->event_head = buffer->event_tail = 0;
    }
  }

  void Unshare(uint16_t domain) {
    if (mapped_.contains(domain)) crash_ = "pages taken back while they are mapped";
    shared_.erase(domain);
  }
  void UnsharePassive() {
    for (const uint16_t domain : passive_) {
      Unshare(domain);
      sampled_.erase(domain);
    }
    passive_.clear();
  }

  XenoprofBuffer* BufferOf(uint16_t domain, uint32_t vcpu) {
    const size_t size = 64 + (size_t{sizes_[domain]} - 1) * sizeof(XenoprofEntry);
    return reinterpret_cast<XenoprofBuffer*>(memory_.at(domain).data() + vcpu * size);
  }

  std::map<uint16_t, int> vcpus_;
  State state_ = State::kIdle;
  bool is_primary_ = false;
  std::vector<Active> active_;
  uint32_t activated_ = 0;
  std::set<uint16_t> sampled_;    // active or passive
  std::map<uint16_t, int> held_;  // references that the active list holds
  bool msrs_ = false;             // the arrays that the NMI handler uses
  bool callback_ = false;         // the NMI handler
  bool clocked_ = false;          // a sampling clock sends NMIs
  std::set<uint16_t> passive_;
  std::map<uint16_t, uint16_t> shared_;  // domains with access to the buffers
  std::set<uint16_t> mapped_;
  std::map<uint16_t, uint32_t> sizes_;
  std::map<uint16_t, std::vector<std::byte>> memory_;
  std::map<uint32_t, XenoprofCounter> programmed_;
  std::vector<XenoprofOp> ops_;
  std::string crash_;
};

// A clock whose NMIs crash the fake Xen at the wrong moments.
class FakeClock final : public SamplingClock {
 public:
  explicit FakeClock(FakeXen& xen) : xen_(xen) {}
  absl::Status Start() override {
    xen_.ClockRuns(true);
    xen_.Nmi(0, 0, Mode::kXen, 1);  // at once
    return absl::OkStatus();
  }
  void Stop() override {
    xen_.Nmi(0, 0, Mode::kXen, 2);  // up to the last moment
    xen_.ClockRuns(false);
  }
  uint64_t Sent() const override { return 2; }

 private:
  FakeXen& xen_;
};

}  // namespace xenoscope::sampler
