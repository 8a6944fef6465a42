// labload: what the lab's guests run. It does things whose amount is known, and counts them.
//
//   labload [WORK[:ROUNDS]]...      one after the other; without ROUNDS the last runs for ever
//   example: labload go cpuid:50000 compute:100
//
// After each work, and about every 4 s within it, it prints one line:
//   LOAD WORK rounds=N begin=TSC end=TSC compute=CYCLES/CALLS cpuid=CYCLES/CALLS ...
// with all that was done since the work began. Cycles are by rdtsc around each piece,
// so time in which another guest ran is inside them.
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "sha256.h"

static inline uint64_t rdtsc(void) {
  uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (uint64_t)high << 32 | low;
}

// --- The pieces. Each is a function of its own, so that a profile can name it.

volatile uint64_t sink;

// leaf_a and leaf_b cost the same a turn; alpha asks for three turns where beta asks for one.
__attribute__((noinline)) void leaf_a(long turns) {
  for (long i = 0; i < turns; ++i) sink = sink * 6364136223846793005u + 1442695040888963407u;
}
__attribute__((noinline)) void leaf_b(long turns) {
  for (long i = 0; i < turns; ++i) sink = sink * 6364136223846793005u + 1442695040888963407u;
}
// What follows each call keeps it a call, so that alpha and beta are on the stack of their leaf.
__attribute__((noinline)) void alpha(long turns) { leaf_a(3 * turns); sink += 1; }
__attribute__((noinline)) void beta(long turns) { leaf_b(turns); sink += 1; }

static void do_compute(long turns) { alpha(turns), beta(turns); }

static void do_sha256(long blocks) {
  static uint32_t state[8];
  static uint8_t block[64];
  sha256_start(state);
  for (long i = 0; i < blocks; ++i) {
    memcpy(block, state, sizeof state);
    sha256_block(state, block);
  }
  sink += state[0];
}

__attribute__((noinline)) static void do_cpuid(long times) {
  for (long i = 0; i < times; ++i) {
    uint32_t a = 0x40000000, b, c = 0, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  }
}

__attribute__((noinline)) static void do_portio(long times) {
  for (long i = 0; i < times; ++i) {
    outb((uint8_t)i, 0x84);
    sink += inb(0x84);
  }
}

__attribute__((noinline)) static void do_syscall(long times) {
  for (long i = 0; i < times; ++i) syscall(SYS_getppid);
}

__attribute__((noinline)) static void do_fault(long pages) {
  size_t size = (size_t)pages * 4096;
  char *area = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) return;
  for (size_t at = 0; at < size; at += 4096) area[at] = 1;
  munmap(area, size);
}

static void do_sleep(long microseconds) {
  struct timespec time = {0, microseconds * 1000};
  nanosleep(&time, 0);
}

// A TRC_GUEST record in Xen's trace, written from here: HVMOP_xentrace (hvm_op 34, op 11).
static void do_hyper(long event) {
  static int device = -2;
  static uint32_t sequence;
  struct {
    uint16_t event, extra_bytes;
    struct __attribute__((packed)) {
      uint64_t tsc;
      uint32_t sequence, cpu;
      char name[8];
    } extra;
    uint8_t rest[4];
  } __attribute__((packed)) argument = {0};
  struct {
    uint64_t operation, argument[5];
  } call = {34, {11, (uint64_t)&argument}};
  unsigned cpu = 0;

  if (device == -2) device = open("/dev/xen/privcmd", O_RDWR | O_CLOEXEC);
  syscall(SYS_getcpu, &cpu, 0, 0);
  argument.event = (uint16_t)event;
  argument.extra_bytes = sizeof argument.extra;
  argument.extra.sequence = sequence++;
  argument.extra.cpu = cpu;
  strncpy(argument.extra.name, event == 0x12 ? "begin" : event == 0x14 ? "end" : "mid", 8);
  argument.extra.tsc = rdtsc();
  // IOCTL_PRIVCMD_HYPERCALL of Linux's xen/privcmd.h.
  if (device < 0 || ioctl(device, _IOC(_IOC_NONE, 'P', 0, sizeof call), &call) != 0) {
    printf("LOAD error: no HVMOP_xentrace: %s\n", strerror(errno));
    exit(1);
  }
}

// Sends itself data over the loopback device (ifconfig lo 127.0.0.1 up). The kernel takes what
// arrives on its stack of interrupts, entered from that of the system call.
__attribute__((noinline)) static void do_udp(long times) {
  static int socket_of_own = -1;
  char data[64] = {0};
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof own;
  if (socket_of_own < 0) {
    socket_of_own = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket_of_own < 0 || bind(socket_of_own, (struct sockaddr *)&own, size) != 0 ||
        getsockname(socket_of_own, (struct sockaddr *)&own, &size) != 0 ||
        connect(socket_of_own, (struct sockaddr *)&own, size) != 0) {
      printf("LOAD error: no loopback: %s\n", strerror(errno));
      exit(1);
    }
  }
  for (long i = 0; i < times; ++i) {
    sink += (uint64_t)send(socket_of_own, data, sizeof data, 0);
    sink += (uint64_t)recv(socket_of_own, data, sizeof data, 0);
  }
}

static void no_kvm(const char *what) {
  printf("LOAD error: no %s: %s\n", what, strerror(errno));
  exit(1);
}

// Makes a virtual machine of a page in this guest, in real mode, whose one processor computes (a loop of
// 20000 turns), writes to a port, and begins again. Returns the processor.
static int make_nested(void) {
  static const uint8_t code[] = {
      0xb9, 0x20, 0x4e,  // mov cx, 20000
      0x49,              // dec cx
      0x75, 0xfd,        // jnz to the dec
      0xe6, 0x84,        // out 0x84, al
      0xeb, 0xf6,        // jmp to the begin
  };
  int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
  if (kvm < 0) no_kvm("/dev/kvm");
  int machine = ioctl(kvm, KVM_CREATE_VM, 0);
  if (machine < 0) no_kvm("virtual machine");
  uint8_t *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) no_kvm("memory");
  memcpy(page, code, sizeof code);
  struct kvm_userspace_memory_region memory = {
      .guest_phys_addr = 0x1000, .memory_size = 4096, .userspace_addr = (uint64_t)page};
  if (ioctl(machine, KVM_SET_USER_MEMORY_REGION, &memory) != 0) no_kvm("memory of the machine");
  int processor = ioctl(machine, KVM_CREATE_VCPU, 0);
  struct kvm_sregs segments;
  if (processor < 0 || ioctl(processor, KVM_GET_SREGS, &segments) != 0) no_kvm("processor");
  segments.cs.base = segments.cs.selector = 0;
  struct kvm_regs registers = {.rip = 0x1000, .rflags = 2};
  if (ioctl(processor, KVM_SET_SREGS, &segments) != 0 ||
      ioctl(processor, KVM_SET_REGS, &registers) != 0)
    no_kvm("registers");
  return processor;
}

// Lets that machine run until it has written to its port so many times.
__attribute__((noinline)) static void do_kvm(long times) {
  static int processor = -1;
  if (processor < 0) processor = make_nested();
  for (long i = 0; i < times; ++i)
    if (ioctl(processor, KVM_RUN, 0) != 0) no_kvm("run of the machine");
}

static void on_tick(int signal) { sink += (uint64_t)signal; }

// Has the kernel's timer interrupt what runs, every millisecond from the first call on.
static void start_ticks(void) {
  static int running;
  if (running) return;
  struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
  struct itimerval timer = {{0, 1000}, {0, 1000}};
  sigaction(SIGALRM, &action, 0);
  setitimer(ITIMER_REAL, &timer, 0);
  running = 1;
}

// --- Counting.

enum piece { COMPUTE, SHA256, CPUID, PORTIO, SYSCALL, FAULT, SLEEP, HYPER, UDP, KVM, PIECES };

static const struct {
  const char *name;
  void (*run)(long);
} pieces[PIECES] = {{"compute", do_compute}, {"sha256", do_sha256}, {"cpuid", do_cpuid},
                    {"portio", do_portio},   {"syscall", do_syscall}, {"fault", do_fault},
                    {"sleep", do_sleep},     {"hyper", do_hyper}, {"udp", do_udp},
                    {"kvm", do_kvm}};

static struct {
  uint64_t cycles, calls;
} counted[PIECES];

// calls: how many of the thing itself one run with this amount does.
static void did(enum piece piece, long amount, long calls) {
  uint64_t begin = rdtsc();
  pieces[piece].run(amount);
  counted[piece].cycles += rdtsc() - begin;
  counted[piece].calls += (uint64_t)calls;
}

// --- The works: what one round of each is.

static void round_compute(void) { did(COMPUTE, 100000, 1); }
static void round_sha256(void) { did(SHA256, 4000, 4000); }
static void round_cpuid(void) { did(CPUID, 1, 1); }
static void round_portio(void) { did(PORTIO, 1, 2); }
static void round_syscall(void) { did(SYSCALL, 1000, 1000); }
static void round_fault(void) { did(FAULT, 256, 256), did(SLEEP, 2000, 1); }
static void round_mix(void) {
  did(COMPUTE, 4000, 1), did(CPUID, 30, 30), did(SYSCALL, 200, 200);
  did(PORTIO, 15, 30), did(SLEEP, 1000, 1);
}
static void round_burn(void) { did(COMPUTE, 400000, 1), did(SYSCALL, 500, 500), did(SLEEP, 3000, 1); }
static void round_calls(void) { did(COMPUTE, 40000, 1), did(SYSCALL, 500, 500); }
static void round_exits(void) { did(CPUID, 1000, 1000), did(PORTIO, 500, 1000); }
static void round_udp(void) { did(UDP, 200, 200); }
static void round_kvm(void) { did(KVM, 20, 20); }
static void round_ticks(void) { start_ticks(), did(COMPUTE, 40000, 1); }
static void round_hyper(void) {
  did(HYPER, 0x12, 1);
  for (int i = 0; i < 8; ++i) did(HYPER, 0x13, 1);
  did(COMPUTE, 4000, 1), did(HYPER, 0x14, 1), did(SLEEP, 2000, 1);
}

static const struct work {
  const char *name;
  void (*round)(void);
  const char *what;
} works[] = {
    {"compute", round_compute, "leaf_a for three times what leaf_b runs"},
    {"spin", round_compute, "the same as compute"},
    {"sha256", round_sha256, "4000 blocks of SHA-256"},
    {"cpuid", round_cpuid, "one CPUID of leaf 0x40000000"},
    {"portio", round_portio, "one outb, one inb"},
    {"syscall", round_syscall, "1000 getppid"},
    {"fault", round_fault, "256 fresh pages touched, 2 ms of sleep"},
    {"mix", round_mix, "compute, 30 CPUIDs, 200 getppid, 15 outb and inb, 1 ms of sleep"},
    {"burn", round_burn, "compute, 500 getppid, 3 ms of sleep"},
    {"calls", round_calls, "compute, 500 getppid; never sleeps"},
    {"udp", round_udp, "200 times 64 bytes over the loopback device"},
    {"ticks", round_ticks, "compute, which a timer interrupts every millisecond"},
    {"exits", round_exits, "1000 CPUIDs, 500 outb and inb"},
    {"kvm", round_kvm, "a virtual machine of its own computes, and writes to a port 20 times"},
    {"hyper", round_hyper, "ten HVMOP_xentrace records around compute, 2 ms of sleep"},
};

static void print(const char *work, uint64_t rounds, uint64_t begin) {
  printf("LOAD %s rounds=%llu begin=%llu end=%llu", work, (unsigned long long)rounds,
         (unsigned long long)begin, (unsigned long long)rdtsc());
  for (int i = 0; i < PIECES; ++i) {
    if (counted[i].calls)
      printf(" %s=%llu/%llu", pieces[i].name, (unsigned long long)counted[i].cycles,
             (unsigned long long)counted[i].calls);
  }
  putchar('\n');
}

static void run(const struct work *work, uint64_t rounds) {
  memset(counted, 0, sizeof counted);
  time_t printed = time(0);
  uint64_t begin = rdtsc(), done = 0;
  while (rounds == 0 || done < rounds) {
    work->round();
    ++done;
    if (time(0) >= printed + 4) {
      print(work->name, done, begin);
      printed = time(0);
    }
  }
  print(work->name, done, begin);
}

// Waits until someone types a line on the console.
static void wait_for_go(void) {
  char line[64];
  puts("LAB ready");
  if (!fgets(line, sizeof line, stdin)) exit(1);
  puts("LAB going");
}

static int usage(void) {
  fputs("usage: labload [go] WORK[:ROUNDS]...   the last may run for ever\n", stderr);
  for (size_t i = 0; i < sizeof works / sizeof *works; ++i)
    fprintf(stderr, "  %-8s %s\n", works[i].name, works[i].what);
  return 2;
}

int main(int count, char **arguments) {
  setvbuf(stdout, 0, _IOLBF, 0);
  if (count < 2) return usage();
  if (ioperm(0x84, 1, 1) != 0) puts("LOAD no port access");
  for (int i = 1; i < count; ++i) {
    char *colon = strchr(arguments[i], ':');
    if (colon) *colon = 0;
    if (!strcmp(arguments[i], "go")) {
      wait_for_go();
      continue;
    }
    const struct work *work = 0;
    for (size_t k = 0; k < sizeof works / sizeof *works; ++k)
      if (!strcmp(works[k].name, arguments[i])) work = &works[k];
    if (!work) return usage();
    run(work, colon ? strtoull(colon + 1, 0, 10) : 0);
  }
  return 0;
}
