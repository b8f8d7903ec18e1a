// For tests that must kill a worker *inside* a save, and prove it. Does nothing unless
// COXSWAIN_TEST_HOLD_IN_SAVE names a folder with a file `hold` whose content is "<point> <rank>": on reaching
// that point of a save, that rank creates the file `held` (content: step and process id) and waits until
// `hold` is gone. Points, in order: "half" (a rank's file is cut in half), "rank" (this rank's files are
// written), "written" (all ranks' are), "renamed" (no marker yet), "marked".
#pragma once

#include <cstdint>

namespace coxswain {

void test_hold(const char* point, int rank, int64_t step);

}  // namespace coxswain
