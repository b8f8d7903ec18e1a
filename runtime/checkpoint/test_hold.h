// For tests that must stop or kill a worker *inside* a save, and prove it. Does nothing unless
// COXSWAIN_TEST_HOLD_IN_SAVE names a folder with a file `hold` whose content is "<point> <rank> <step>": on
// reaching that point of a save, of that step or a later one, that rank creates the file `held` (content:
// step and process id) and waits until `hold` is gone. Points, in order: "begun" (no file of this rank is
// there), "half" (half of its files are), "rank" (all of its files are); on rank 0 also "written" (every
// rank's files are there) and "renamed" (the folder has its name, but no marker yet).
#pragma once

#include <cstdint>

namespace coxswain {

void test_hold(const char* point, int rank, int64_t step);

}  // namespace coxswain
