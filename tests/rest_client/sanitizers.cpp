// LeakSanitizer asks for this. The C++ REST SDK never ends its threads, and what they hold at exit (32 bytes
// for the one that looks names up) counts as lost.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libcpprest.so\n";
}
