// docs/conditions.md names every reason of a condition or an event, and every cause of a failure.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "operator/reconcile/failure_cause.h"

namespace coxswain {
namespace {

std::string text_of(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Docs, NameEveryReasonAndCause) {
  const std::string docs = text_of("docs/conditions.md");
  std::vector<std::string> words(std::begin(kCauses), std::end(kCauses));
  const std::string header = text_of("operator/reconcile/reasons.h");
  const std::regex literal("= \"(\\w+)\"");
  for (std::sregex_iterator it(header.begin(), header.end(), literal), end; it != end; ++it) {
    words.push_back((*it)[1]);
  }
  EXPECT_GT(words.size(), 60U);
  for (const std::string& word : words) {
    EXPECT_NE(docs.find("`" + word + "`"), std::string::npos) << word;
  }
}

}  // namespace
}  // namespace coxswain
