// What the tests of ELF and DWARF look at: functions inlined into each other, in a namespace, in a
// class, and a static one that the linker's tables alone know. Compiled with -O2 -g.
#include <cstdint>
#include <cstdio>

namespace subject {

static volatile uint64_t sink;

inline __attribute__((always_inline)) uint64_t Mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccd;
  sink = x;
  return x ^ (x >> 29);
}

class Chain {
 public:
  __attribute__((noinline)) uint64_t Step(uint64_t x) {
    for (int i = 0; i < 3; ++i) {
      state_ = Twice(x + state_);
    }
    return state_;
  }

 private:
  static inline __attribute__((always_inline)) uint64_t Twice(uint64_t x) {
    return Mix(Mix(x) + 1);
  }
  uint64_t state_ = 1;
};

static __attribute__((noinline)) uint64_t Local(uint64_t x) {
  if (x % 3 == 0) {
    const uint64_t half = Mix(x / 2);
    sink = half;
  }
  return Mix(x) + 1;
}

}  // namespace subject

int main(int argc, char**) {
  subject::Chain chain;
  const uint64_t end = chain.Step(static_cast<uint64_t>(argc)) + subject::Local(3);
  std::printf("%llu\n", static_cast<unsigned long long>(end));
  return 0;
}
