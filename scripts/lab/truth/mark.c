// Opens and closes the window in which the plugin counts: mark open|close
// Prints the TSC of the window's begin or end. Linked to addresses that no other program of the lab
// uses, so that the plugin knows the marks.
#include <stdio.h>
#include <x86intrin.h>

__attribute__((noinline)) void mark_open(void) { __asm__ volatile(""); }
__attribute__((noinline)) void mark_close(void) { __asm__ volatile(""); }

int main(int count, char **arguments) {
  if (count != 2) return 2;
  if (arguments[1][0] == 'o') {
    mark_open();
    printf("%llu\n", __rdtsc());
  }
  if (arguments[1][0] == 'c') {
    unsigned long long end = __rdtsc();
    mark_close();
    printf("%llu\n", end);
  }
  return 0;
}
