// A QEMU plugin that counts exactly how many instructions run at every address, between two marks.
// A sampling profile of the same window must converge to these counts.
//
//   -plugin counter.so,open=ADDRESS,close=ADDRESS,out=FILE
//
// FILE then holds a line `ADDRESS VCPU STATE COUNT` for each address that ran in the window. The
// numbers are hexadecimal. Address spaces are not distinguished.
//
// With the QEMU of scripts/lab/qemu the plugin also knows for which vCPU the CPU works, and what it
// does for those of HVM guests (AMD's SVM). VCPU is the domain's number times 65536, and the
// vCPU's: that of the last trace record by which Xen let a vCPU run. STATE is `run` for vCPUs that
// never executed VMRUN. The others:
//
//   guest   between VMRUN and #VMEXIT
//   leave:X after #VMEXIT for the reason X, until Xen writes the trace record TRC_HVM_VMEXIT
//   exit:X  from there until the record TRC_HVM_VMENTRY; other vCPUs may run meanwhile
//   enter   from that record until VMRUN
//
// X is the VMCB's EXITCODE. Blocks that an exception or a #VMEXIT cuts short count as far as they
// ran. Without that QEMU all is `ffffffff run`, and blocks count as a whole.
//
// Debian packages no header of the interface; the declarations below are those of
// qemu/qemu-plugin.h, version 1, as far as they are needed.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { CB_NO_REGS = 0 };
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t,
                                           void (*)(qemu_plugin_id_t, struct qemu_plugin_tb*));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb*, void (*)(unsigned, void*), int,
                                          void*);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void*), void*);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb*);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb*, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn*);

int qemu_plugin_version = 1;

// What the patch of scripts/lab/pmu adds.
struct qemu_plugin_x86_state {
  uint64_t instructions, rdi, rsi, rdx, rcx;
  uint32_t exit_code, exits, guest;
};
void qemu_plugin_x86_state(struct qemu_plugin_x86_state*) __attribute__((weak));
bool qemu_plugin_x86_read(uint64_t, void*, uint32_t) __attribute__((weak));

// The first argument of Xen's function that writes a trace record (xen/include/public/trace.h). The
// others are: whether it has a TSC, the number of its bytes, and where they are.
enum {
  TRC_HVM_VMENTRY = 0x81001,
  TRC_HVM_VMEXIT = 0x81002,
  TRC_HVM_VMEXIT64 = 0x81102,
  TRC_SCHED_RUNSTATE_CHANGE = 0x21001,  // | old << 8 | new << 4; running is 0
  OLD_RUNSTATE = 3 << 8,
};

// What a count belongs to.
enum state { RUN, GUEST, LEAVE, EXIT, ENTER };
struct context {
  uint32_t vcpu, code;
  enum state state;
};
enum { CONTEXTS = 256 };
static struct context contexts[CONTEXTS];
static unsigned context_count;

static unsigned id_of(struct context context) {
  for (unsigned id = 0; id < context_count; ++id)
    if (!memcmp(&contexts[id], &context, sizeof context)) return id;
  if (context_count == CONTEXTS) abort();
  contexts[context_count] = context;
  return context_count++;
}

// A block is known by its first and last address and its length: when it is translated again, its
// counts go on. `whole` and `cut` are by context; cut[id][k] times only k instructions ran.
struct block {
  uint64_t* addresses;
  uint32_t length;
  uint64_t* whole;
  uint64_t** cut;
  struct block* next;
};

enum { BUCKETS = 1 << 16 };
static struct block* blocks[BUCKETS];
static uint64_t open_at, close_at;
static const char* out;
static bool counting;

static void* zeros(size_t count, size_t size) {
  void* memory = calloc(count, size);
  if (!memory) abort();
  return memory;
}

static struct block* find(const struct qemu_plugin_tb* tb) {
  uint64_t first = qemu_plugin_tb_vaddr(tb);
  uint32_t length = qemu_plugin_tb_n_insns(tb);
  uint64_t last = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, length - 1));
  struct block** bucket = &blocks[(first * 0x9e3779b97f4a7c15u) >> 48];
  for (struct block* block = *bucket; block; block = block->next)
    if (block->addresses[0] == first && block->length == length &&
        block->addresses[length - 1] == last)
      return block;
  struct block* block = zeros(1, sizeof *block);
  block->addresses = zeros(length, sizeof *block->addresses);
  for (uint32_t i = 0; i < length; ++i)
    block->addresses[i] = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, i));
  block->length = length, block->next = *bucket;
  return *bucket = block;
}

// What a CPU is at.
enum { CPUS = 256 };
struct cpu {
  uint32_t exits;
  bool records_runstate;
  struct context context;
  unsigned id;
};
static struct cpu cpus[CPUS];

// The vCPUs of HVM guests, with the reason of their last exit.
static struct hvm_vcpu { uint32_t vcpu, code; } hvm_vcpus[CONTEXTS];
static unsigned hvm_vcpu_count;

static struct hvm_vcpu* hvm_vcpu(uint32_t vcpu) {
  for (unsigned i = 0; i < hvm_vcpu_count; ++i)
    if (hvm_vcpus[i].vcpu == vcpu) return &hvm_vcpus[i];
  return NULL;
}

static void note_exit(uint32_t vcpu, uint32_t code) {
  struct hvm_vcpu* known = hvm_vcpu(vcpu);
  if (!known) {
    if (hvm_vcpu_count == CONTEXTS) abort();
    known = &hvm_vcpus[hvm_vcpu_count++];
    known->vcpu = vcpu;
  }
  known->code = code;
}

static struct context in_xen(struct cpu* cpu, const struct qemu_plugin_x86_state* now) {
  struct context context = cpu->context;
  // The guest may have stopped before it executed a block.
  if (now->exits != cpu->exits) {
    note_exit(context.vcpu, now->exit_code);
    context.code = now->exit_code, context.state = LEAVE;
  }
  bool records_runstate = (now->rdi & ~(uint64_t)OLD_RUNSTATE) == TRC_SCHED_RUNSTATE_CHANGE &&
                          (now->rdi & OLD_RUNSTATE) && (now->rsi & 0xff) == 1 &&
                          (uint32_t)now->rdx == sizeof(uint32_t);
  uint32_t starts;  // the vCPU's number, and the domain's in the upper half
  if (records_runstate && !cpu->records_runstate &&
      qemu_plugin_x86_read(now->rcx, &starts, sizeof starts)) {
    const struct hvm_vcpu* known = hvm_vcpu(starts);
    context =
        known ? (struct context){starts, known->code, EXIT} : (struct context){starts, 0, RUN};
  }
  cpu->records_runstate = records_runstate;
  if (context.state != RUN && now->rdi == TRC_HVM_VMENTRY)
    context.state = ENTER, context.code = 0;
  else if (context.state == LEAVE && (now->rdi == TRC_HVM_VMEXIT || now->rdi == TRC_HVM_VMEXIT64))
    context.state = EXIT;
  return context;
}

static void follow(struct cpu* cpu, const struct qemu_plugin_x86_state* now) {
  struct context context = cpu->context;
  if (!now->guest) {
    context = in_xen(cpu, now);
  } else {
    context.state = GUEST, context.code = 0;
    cpu->records_runstate = false;
  }
  cpu->exits = now->exits;
  if (memcmp(&context, &cpu->context, sizeof context)) {
    cpu->context = context;
    cpu->id = id_of(context);
  }
}

// The block that runs: how far it came is known when the next one begins.
static struct block* running;
static uint64_t running_since;
static unsigned running_id;

static void count_running(uint64_t now) {
  if (!running->whole) {
    running->whole = zeros(CONTEXTS, sizeof *running->whole);
    running->cut = zeros(CONTEXTS, sizeof *running->cut);
  }
  if (now - running_since >= running->length) {
    ++running->whole[running_id];
    return;
  }
  uint64_t** cut = &running->cut[running_id];
  if (!*cut) *cut = zeros(running->length, sizeof **cut);
  ++(*cut)[now - running_since];
}

static void on_block(unsigned index, void* data) {
  struct block* block = data;
  struct cpu* cpu = &cpus[index % CPUS];
  uint64_t begins = running_since + (running ? running->length : 0);
  if (qemu_plugin_x86_state) {
    struct qemu_plugin_x86_state now;
    qemu_plugin_x86_state(&now);
    begins = now.instructions - block->length;
    follow(cpu, &now);
  }
  if (running) count_running(begins);
  if (block->addresses[0] == open_at) counting = true;
  if (block->addresses[0] == close_at) counting = false;
  running = counting ? block : NULL;
  running_since = begins;
  running_id = cpu->id;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb* tb) {
  (void)id;
  qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, CB_NO_REGS, find(tb));
}

// The counts of one address, by context.
struct address {
  uint64_t address;
  uint64_t counts[CONTEXTS];
  struct address* next;
};
static struct address* addresses[BUCKETS];

static struct address* at(uint64_t address) {
  struct address** bucket = &addresses[(address * 0x9e3779b97f4a7c15u) >> 48];
  for (struct address* each = *bucket; each; each = each->next)
    if (each->address == address) return each;
  struct address* each = zeros(1, sizeof *each);
  each->address = address, each->next = *bucket;
  return *bucket = each;
}

static void add(const struct block* block) {
  for (unsigned id = 0; block->whole && id < context_count; ++id) {
    uint64_t reached = block->whole[id];
    for (uint32_t i = block->length; i-- > 0;) {
      // cut[k] ran the instructions before k.
      if (block->cut[id] && i + 1 < block->length) reached += block->cut[id][i + 1];
      if (reached) at(block->addresses[i])->counts[id] += reached;
    }
  }
}

static void print(FILE* file, const struct address* each) {
  static const char* names[] = {"run", "guest", "leave", "exit", "enter"};
  for (unsigned id = 0; id < context_count; ++id) {
    const struct context* context = &contexts[id];
    if (!each->counts[id]) continue;
    fprintf(file, "%016llx %x %s", (unsigned long long)each->address, context->vcpu,
            names[context->state]);
    if (context->state == LEAVE || context->state == EXIT) fprintf(file, ":%x", context->code);
    fprintf(file, " %llx\n", (unsigned long long)each->counts[id]);
  }
}

static void on_exit_of_qemu(qemu_plugin_id_t id, void* data) {
  (void)id, (void)data;
  FILE* file = fopen(out, "w");
  if (!file) return;
  for (int i = 0; i < BUCKETS; ++i)
    for (struct block* block = blocks[i]; block; block = block->next) add(block);
  for (int i = 0; i < BUCKETS; ++i)
    for (struct address* each = addresses[i]; each; each = each->next) print(file, each);
  fclose(file);
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id,
                                                               const void* info, int count,
                                                               char** arguments) {
  (void)info;
  for (int i = 0; i < count; ++i) {
    char* value = strchr(arguments[i], '=');
    if (!value) return -1;
    *value++ = 0;
    if (!strcmp(arguments[i], "open")) open_at = strtoull(value, 0, 16);
    if (!strcmp(arguments[i], "close")) close_at = strtoull(value, 0, 16);
    if (!strcmp(arguments[i], "out")) out = strdup(value);
  }
  if (!open_at || !close_at || !out) return -1;
  for (int i = 0; i < CPUS; ++i) {
    cpus[i].context = (struct context){UINT32_MAX, 0, RUN};
    cpus[i].id = id_of(cpus[i].context);
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
  qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, 0);
  return 0;
}
