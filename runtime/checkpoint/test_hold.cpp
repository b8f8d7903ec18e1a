#include "runtime/checkpoint/test_hold.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace coxswain {
namespace fs = std::filesystem;

void test_hold(const char* point, int rank, int64_t step) {
  static const char* const folder = std::getenv("COXSWAIN_TEST_HOLD_IN_SAVE");
  if (folder == nullptr) return;
  const fs::path hold = fs::path(folder) / "hold";
  std::ifstream in(hold);
  std::string wanted_point;
  int wanted_rank = -1;
  int64_t first_step = 0;
  if (!(in >> wanted_point >> wanted_rank >> first_step)) return;
  if (wanted_point != point || wanted_rank != rank || step < first_step) return;
  std::ofstream(fs::path(folder) / "held.tmp") << step << ' ' << ::getpid() << '\n';
  fs::rename(fs::path(folder) / "held.tmp", fs::path(folder) / "held");
  while (fs::exists(hold)) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace coxswain
