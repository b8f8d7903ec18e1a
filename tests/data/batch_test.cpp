#include "runtime/data/batch.h"

#include <gmock/gmock.h>

namespace coxswain {
namespace {

using ::testing::ElementsAre;

TEST(Collate, PadsOnTheRightAndKeepsLengths) {
  const Row a{{1, 2, 3}, {1, 2, 3}, {3}}, b{{9}, {9}, {1}};
  const Batch batch = collate({&a, &b}, 7);
  EXPECT_EQ(batch.rows, 2);
  EXPECT_EQ(batch.length, 3);
  EXPECT_THAT(batch.ids, ElementsAre(1, 2, 3, 9, 7, 7));
  EXPECT_THAT(batch.labels, ElementsAre(1, 2, 3, 9, kIgnoredLabel, kIgnoredLabel));
  EXPECT_THAT(batch.lengths, ElementsAre(3, 1));
  EXPECT_THAT(batch.segments, ElementsAre(ElementsAre(3), ElementsAre(1)));
}

TEST(CountTargets, LeavesOutFirstPlacesIgnoredLabelsAndPadding) {
  const Row masked{{1, 2, 3}, {kIgnoredLabel, kIgnoredLabel, 3}, {3}};
  const Row packed{{1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}, {2, 3}};
  EXPECT_EQ(count_targets(collate({&masked}, 0)), 1);
  EXPECT_EQ(count_targets(collate({&packed}, 0)), 3);
  EXPECT_EQ(count_targets(collate({&masked, &packed}, 0)), 4);
}

TEST(CountTargets, IsZeroForARowWhoseOnlyLabelStandsFirst) {
  const Row row{{1, 2}, {1, kIgnoredLabel}, {2}};
  EXPECT_EQ(count_targets(collate({&row}, 0)), 0);
}

}  // namespace
}  // namespace coxswain
