#include "runtime/train/run_log.h"

#include <cstdio>
#include <ctime>

namespace coxswain {
namespace {

std::string time_of_day() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ ", &utc);
  return text;
}

}  // namespace

Result<void> RunLog::open(const std::filesystem::path& file) {
  if (!speaks_) return {};
  file_.open(file, std::ios::app);
  file_ << unwritten_ << std::flush;
  unwritten_.clear();
  if (!file_) return fail(contract::ExitCode::kStorage, "Cannot write the log file " + file.string() + ".");
  return {};
}

void RunLog::say(const std::string& sentence) {
  if (!speaks_) return;
  if (print_) {
    print_(sentence);
  } else {
    std::fprintf(stdout, "%s\n", sentence.c_str());
    std::fflush(stdout);
  }
  note(sentence);
}

void RunLog::note(const std::string& sentence) {
  if (!speaks_) return;
  if (file_.is_open()) {
    file_ << time_of_day() << sentence << '\n' << std::flush;
  } else {
    unwritten_ += time_of_day() + sentence + '\n';
  }
}

}  // namespace coxswain
