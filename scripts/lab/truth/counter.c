// A QEMU plugin that counts exactly how many instructions run at every address, between two marks.
// A sampling profile of the same window must converge to these counts.
//
//   -plugin counter.so,open=ADDRESS,close=ADDRESS,out=FILE
//
// FILE then holds a line `ADDRESS INSTRUCTIONS COUNT` for each translated block that ran in the
// window: COUNT times INSTRUCTIONS instructions from ADDRESS on. Address spaces are not told apart.
//
// Debian packages no header of the interface; the declarations below are those of
// qemu/qemu-plugin.h, version 1, as far as they are needed.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
enum { INLINE_ADD_U64 = 0, CB_NO_REGS = 0 };
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t,
                                           void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int, void *, uint64_t);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int,
                                          void *);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);

int qemu_plugin_version = 1;

// A block is known by its address and length: when it is translated again, its count goes on.
struct block {
  uint64_t address, instructions, count, before, within;
  struct block *next;
};

enum { BUCKETS = 1 << 16 };
static struct block *blocks[BUCKETS];
static uint64_t open_at, close_at;
static const char *out;

static struct block *find(uint64_t address, uint64_t instructions) {
  struct block **bucket = &blocks[(address * 0x9e3779b97f4a7c15u) >> 48];
  for (struct block *block = *bucket; block; block = block->next)
    if (block->address == address && block->instructions == instructions) return block;
  struct block *block = calloc(1, sizeof *block);
  if (!block) abort();
  block->address = address, block->instructions = instructions, block->next = *bucket;
  return *bucket = block;
}

static void each(void (*visit)(struct block *)) {
  for (int i = 0; i < BUCKETS; ++i)
    for (struct block *block = blocks[i]; block; block = block->next) visit(block);
}

static void keep_before(struct block *block) { block->before = block->count; }
static void keep_within(struct block *block) { block->within = block->count - block->before; }

static void on_open(unsigned cpu, void *data) { (void)cpu, (void)data, each(keep_before); }
static void on_close(unsigned cpu, void *data) { (void)cpu, (void)data, each(keep_within); }

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
  (void)id;
  uint64_t address = qemu_plugin_tb_vaddr(tb);
  struct block *block = find(address, qemu_plugin_tb_n_insns(tb));
  qemu_plugin_register_vcpu_tb_exec_inline(tb, INLINE_ADD_U64, &block->count, 1);
  if (address == open_at) qemu_plugin_register_vcpu_tb_exec_cb(tb, on_open, CB_NO_REGS, 0);
  if (address == close_at) qemu_plugin_register_vcpu_tb_exec_cb(tb, on_close, CB_NO_REGS, 0);
}

static FILE *file;
static void print(struct block *block) {
  if (block->within)
    fprintf(file, "%016llx %llu %llu\n", (unsigned long long)block->address,
            (unsigned long long)block->instructions, (unsigned long long)block->within);
}

static void on_exit_of_qemu(qemu_plugin_id_t id, void *data) {
  (void)id, (void)data;
  file = fopen(out, "w");
  if (!file) return;
  each(print);
  fclose(file);
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const void *info,
                                                               int count, char **arguments) {
  (void)info;
  for (int i = 0; i < count; ++i) {
    char *value = strchr(arguments[i], '=');
    if (!value) return -1;
    *value++ = 0;
    if (!strcmp(arguments[i], "open")) open_at = strtoull(value, 0, 16);
    if (!strcmp(arguments[i], "close")) close_at = strtoull(value, 0, 16);
    if (!strcmp(arguments[i], "out")) out = strdup(value);
  }
  if (!open_at || !close_at || !out) return -1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
  qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, 0);
  return 0;
}
