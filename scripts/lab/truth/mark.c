// Opens and closes the window in which the plugin counts: mark open|close
// Linked to addresses that no other program of the lab uses, so that the plugin knows the marks.
__attribute__((noinline)) void mark_open(void) { __asm__ volatile(""); }
__attribute__((noinline)) void mark_close(void) { __asm__ volatile(""); }

int main(int count, char **arguments) {
  if (count != 2) return 2;
  if (arguments[1][0] == 'o') mark_open();
  if (arguments[1][0] == 'c') mark_close();
  return 0;
}
