/* Writes marks of a program into Xen's trace, from any guest or dom0. C++, and C with POSIX.1-2008
 * (-std=gnu99, or _POSIX_C_SOURCE=200809L); no library.
 *
 *   #include <xenoscope_mark.h>
 *
 *   int marks = xenoscope_mark_open();
 *   xenoscope_mark(marks, XENOSCOPE_MARK_BEGIN, "request");
 *   serve();
 *   xenoscope_mark(marks, XENOSCOPE_MARK_END, "request");
 *
 * A mark is a hypercall (HVMOP_xentrace) for each 16 bytes of text. Where no one records a trace,
 * Xen drops it. trace/guest_mark.h describes the records.
 */
#ifndef XENOSCOPE_MARK_H
#define XENOSCOPE_MARK_H

/* NOLINTBEGIN(modernize-deprecated-headers, modernize-redundant-void-arg): it is C, too */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define XENOSCOPE_MARK_EVENT 0x5ceU
#define XENOSCOPE_MARK_MAX_TEXT 64U

enum xenoscope_mark_kind { XENOSCOPE_MARK_INSTANT, XENOSCOPE_MARK_BEGIN, XENOSCOPE_MARK_END };

/* xen/include/public/hvm/hvm_op.h: struct xen_hvm_xentrace. */
struct xenoscope_mark_argument {
  uint16_t event;
  uint16_t extra_bytes;
  uint8_t extra[28];
};

/* Linux's include/uapi/xen/privcmd.h: struct privcmd_hypercall. */
struct xenoscope_mark_call {
  uint64_t operation;
  uint64_t argument[5];
};

/* Written without casts, so that it compiles without warnings as C and as C++. */
static inline uint64_t xenoscope_mark_tsc(void) {
  uint32_t low;
  uint64_t high;
  __asm__ __volatile__("rdtsc" : "=a"(low), "=d"(high));
  return high << 32 | low;
}

/* Returns a file descriptor for xenoscope_mark(), or -errno: -ENOENT without /dev/xen/privcmd (no
 * Xen, or the module xen-privcmd is not loaded), -EACCES without rights. */
static inline int xenoscope_mark_open(void) {
  const int device = open("/dev/xen/privcmd", O_RDWR | O_CLOEXEC);
  return device >= 0 ? device : -errno;
}

/* Fills in the record with the text's bytes from `at` on; returns how many there are. `number` is
 * the mark's. Exposed for tests. */
static inline uint32_t xenoscope_mark_fill(struct xenoscope_mark_argument* argument, uint64_t tsc,
                                           enum xenoscope_mark_kind kind, uint16_t number,
                                           const char* text, uint32_t length, uint32_t at) {
  const uint32_t bytes = length - at < 16 ? length - at : 16;
  const uint32_t more = at + bytes < length;
  const uint32_t kind_bits = kind;
  const uint32_t number_bits = number;
  const uint32_t word =
      1U | kind_bits << 4 | bytes << 8 | more << 13 | at / 16 << 14 | number_bits << 16;
  memset(argument, 0, sizeof *argument);
  argument->event = XENOSCOPE_MARK_EVENT;
  argument->extra_bytes = (12U + (bytes + 3) / 4 * 4) & 0x1fU;
  memcpy(argument->extra, &tsc, sizeof tsc);
  memcpy(argument->extra + 8, &word, sizeof word);
  memcpy(argument->extra + 12, text + at, bytes);
  return bytes;
}

/* Writes a mark with a text of at most XENOSCOPE_MARK_MAX_TEXT bytes. Returns 0 or -errno: -E2BIG
 * for a longer text, -EPERM where the guest's Linux lets no program make hypercalls. May be called
 * by several threads. */
static inline int xenoscope_mark(int device, enum xenoscope_mark_kind kind, const char* text) {
  static uint32_t marks; /* of this process */
  const uint32_t process = getpid();
  const uint32_t count = __atomic_add_fetch(&marks, 1, __ATOMIC_RELAXED);
  const uint16_t number = (process * 61 + count) & 0xffffU;
  const uint32_t length = strnlen(text, XENOSCOPE_MARK_MAX_TEXT + 1) & 0x7fU;
  uint32_t at = 0;
  if (length > XENOSCOPE_MARK_MAX_TEXT) return -E2BIG;
  do {
    struct xenoscope_mark_argument argument;
    struct xenoscope_mark_argument* const address = &argument;
    struct xenoscope_mark_call call = {34 /* hvm_op */, {11 /* HVMOP_xentrace */, 0, 0, 0, 0}};
    at += xenoscope_mark_fill(&argument, xenoscope_mark_tsc(), kind, number, text, length, at);
    memcpy(&call.argument[1], &address, sizeof call.argument[1]);
    /* IOCTL_PRIVCMD_HYPERCALL */
    if (ioctl(device, _IOC(_IOC_NONE, 'P', 0, sizeof call), &call) != 0) return -errno;
  } while (at < length);
  return 0;
}

/* NOLINTEND(modernize-deprecated-headers, modernize-redundant-void-arg) */
#endif
