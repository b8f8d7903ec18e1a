// The judge, judged.
#include "tests/operator_metrics/exposition.h"

#include <gtest/gtest.h>

namespace coxswain {
namespace {

constexpr char kHead[] = "# HELP a_total Words.\n# TYPE a_total counter\n";

TEST(Exposition, ReadsSamples) {
  const auto read = parse_exposition(std::string(kHead) + "a_total{b=\"x\\\"y\",a=\"1\"} 2.5e1\na_total 3\n");
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->value("a_total{a=\"1\",b=\"x\\\"y\"}"), 25);
  EXPECT_EQ(read->value("a_total"), 3);
}

TEST(Exposition, RefusesWhatAScraperWould) {
  for (const std::string& bad : {
           std::string("a_total 1\n"),        // no TYPE
           kHead + std::string("a_total 1"),  // no newline
           kHead + std::string("a_total 1\na_total 1\n"),
           kHead + std::string("a_total{a=\"1} 1\n"),
           kHead + std::string("a_total{a=1} 1\n"),
           kHead + std::string("a_total one\n"),
           kHead + std::string("a_total -1\n"),
           kHead + std::string("9a 1\n"),
           std::string(kHead) + kHead + "a_total 1\n",
           std::string("# HELP h x\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_sum 1\nh_count 2\n"),
           std::string("# HELP h x\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\n"
                       "h_sum 1\nh_count 1\n"),
           std::string("# HELP g x\n# TYPE g odd\ng 1\n"),
       }) {
    EXPECT_FALSE(parse_exposition(bad)) << bad;
  }
}

}  // namespace
}  // namespace coxswain
