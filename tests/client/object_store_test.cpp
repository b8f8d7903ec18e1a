#include "operator/client/object_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/client/trim.h"

namespace coxswain {
namespace {

using ::testing::ElementsAre;

Json an_object(const std::string& name, int version, const std::string& uid = "") {
  return {{"metadata",
           {{"name", name},
            {"namespace", "ns"},
            {"uid", uid.empty() ? "uid-" + name : uid},
            {"resourceVersion", std::to_string(version)}}}};
}

class ObjectStoreTest : public ::testing::Test {
 protected:
  std::vector<std::string> changes_;  // "+a@1", "~a@2", "-a@2"
  ObjectStore store_{{}, by_owner_uid(), [this](const Json& before, const Json& after) {
                       const Json& object = after.is_null() ? before : after;
                       changes_.push_back((before.is_null()  ? "+"
                                           : after.is_null() ? "-"
                                                             : "~") +
                                          metadata::name(object) + "@" + metadata::resource_version(object));
                     }};

  void list(std::vector<Json> objects, int version) {
    store_.apply(ListBegins{});
    for (Json& object : objects) store_.apply(Listed{std::move(object)});
    store_.apply(ListEnds{std::to_string(version)});
  }
  void write(const std::string& name, int version, const std::string& uid = "") {
    store_.apply(Written{an_object(name, version, uid)});
  }
  void erase(const std::string& name, int version, const std::string& uid = "") {
    store_.apply(Deleted{an_object(name, version, uid)});
  }
  std::string version(const std::string& name) {
    const auto object = store_.find({"ns", name});
    return object == nullptr ? "" : metadata::resource_version(*object);
  }
};

TEST_F(ObjectStoreTest, IsFilledByTheFirstWholeList) {
  store_.apply(ListBegins{});
  store_.apply(Listed{an_object("a", 1)});
  EXPECT_FALSE(store_.filled());
  store_.apply(ListEnds{"5"});
  EXPECT_TRUE(store_.filled());
}

TEST_F(ObjectStoreTest, AListSaysOnlyWhatIsDifferent) {
  list({an_object("a", 1), an_object("b", 2), an_object("c", 3)}, 5);
  changes_.clear();
  list({an_object("a", 1), an_object("b", 7), an_object("d", 8)}, 9);
  EXPECT_THAT(changes_, ElementsAre("~b@7", "+d@8", "-c@3"));
}

TEST_F(ObjectStoreTest, AListThatIsBegunAgainForgetsNobody) {
  list({an_object("a", 1), an_object("b", 2)}, 5);
  changes_.clear();
  store_.apply(ListBegins{});
  store_.apply(Listed{an_object("a", 1)});
  list({an_object("a", 1), an_object("b", 2)}, 6);
  EXPECT_TRUE(changes_.empty());
}

TEST_F(ObjectStoreTest, AnObjectMadeAnewUnderItsNameIsAnotherOne) {
  list({an_object("a", 1, "first")}, 5);
  erase("a", 6, "first");
  write("a", 7, "second");
  EXPECT_THAT(changes_, ElementsAre("+a@1", "-a@1", "+a@7"));
}

TEST_F(ObjectStoreTest, AnObjectWhoseEndWasMissedIsSaidToHaveGone) {
  list({an_object("a", 1, "first")}, 5);
  changes_.clear();
  list({an_object("a", 7, "second")}, 9);
  EXPECT_THAT(changes_, ElementsAre("-a@1", "+a@7"));
}

// --- Note [Own writes]

TEST_F(ObjectStoreTest, AnOwnWriteIsSeenAtOnceAndOnce) {
  list({an_object("a", 1)}, 5);
  changes_.clear();
  store_.remember(an_object("a", 6));
  store_.remember(an_object("b", 7));
  write("a", 6);
  write("b", 7);
  EXPECT_THAT(changes_, ElementsAre("~a@6", "+b@7"));
}

TEST_F(ObjectStoreTest, WhatTheWatchBringsFromBeforeAnOwnWriteIsPassedOver) {
  list({an_object("a", 1)}, 5);
  store_.remember(an_object("a", 9));
  write("a", 7);
  EXPECT_EQ(version("a"), "9");
  write("a", 9);
  write("a", 10);
  EXPECT_EQ(version("a"), "10");
}

TEST_F(ObjectStoreTest, AnAnswerThatComesAfterTheWatchHasMovedOnIsPassedOver) {
  list({}, 5);
  write("a", 6);
  erase("a", 8);
  changes_.clear();
  store_.remember(an_object("a", 6));
  EXPECT_TRUE(changes_.empty()) << "it would stay for ever";
}

TEST_F(ObjectStoreTest, ABookmarkMovesOnToo) {
  list({}, 5);
  store_.apply(Reached{"20"});
  store_.remember(an_object("a", 12));
  EXPECT_EQ(store_.size(), 0U);
  store_.remember(an_object("b", 21));
  EXPECT_EQ(store_.size(), 1U);
}

TEST_F(ObjectStoreTest, AnOwnCreationIsNotLostToAnOlderList) {
  list({}, 5);
  store_.apply(ListBegins{});
  store_.remember(an_object("a", 9));
  store_.apply(ListEnds{"7"});
  EXPECT_EQ(version("a"), "9");
  list({}, 12);
  EXPECT_EQ(version("a"), "") << "a later list knows better";
}

TEST_F(ObjectStoreTest, AnOwnDeletionIsSeenAtOnceAndOnce) {
  list({an_object("a", 1)}, 5);
  changes_.clear();
  store_.forget({"ns", "a"}, "uid-a");
  write("a", 6);  // still on its way from before
  erase("a", 7);
  EXPECT_THAT(changes_, ElementsAre("-a@1"));
}

TEST_F(ObjectStoreTest, AnOwnDeletionDoesNotHideTheNextOneOfThatName) {
  list({an_object("a", 1, "first")}, 5);
  store_.forget({"ns", "a"}, "first");
  store_.remember(an_object("a", 8, "second"));
  erase("a", 7, "first");
  EXPECT_EQ(version("a"), "8");
  write("a", 8, "second");
  write("a", 9, "second");
  EXPECT_EQ(version("a"), "9");
}

TEST_F(ObjectStoreTest, AnOwnDeletionOutlastsAListFromBeforeIt) {
  list({an_object("a", 1)}, 5);
  store_.forget({"ns", "a"}, "uid-a");
  changes_.clear();
  list({an_object("a", 1)}, 6);
  write("a", 7);
  erase("a", 8);
  EXPECT_TRUE(changes_.empty());
}

TEST_F(ObjectStoreTest, AnOwnDeletionOutlastsAListFromBeforeTheCreation) {
  list({}, 5);
  store_.apply(ListBegins{});
  store_.remember(an_object("a", 8));
  store_.forget({"ns", "a"}, "uid-a");
  store_.apply(ListEnds{"6"});
  changes_.clear();
  write("a", 8);
  erase("a", 9);
  EXPECT_TRUE(changes_.empty());
}

TEST_F(ObjectStoreTest, OnlyTheObjectThatIsMeantIsForgotten) {
  list({an_object("a", 1, "second")}, 5);
  store_.forget({"ns", "a"}, "first");
  store_.forget({"ns", "b"}, "uid-b");
  write("b", 6);
  EXPECT_EQ(store_.size(), 2U);
}

// --- Indexes and what is kept

Json owned(const std::string& name, int version, const std::string& owner) {
  Json object = an_object(name, version);
  object["metadata"]["ownerReferences"] = {{{"uid", "other"}, {"controller", false}},
                                           {{"uid", owner}, {"controller", true}}};
  return object;
}

TEST_F(ObjectStoreTest, IsIndexedByTheOwner) {
  list({owned("a", 1, "x"), owned("b", 2, "x"), owned("c", 3, "y"), an_object("d", 4)}, 5);
  EXPECT_EQ(store_.by_index(kOwnerUidIndex, "x").size(), 2U);
  EXPECT_TRUE(store_.by_index(kOwnerUidIndex, "other").empty());
  store_.apply(Written{owned("a", 6, "y")});
  store_.apply(Deleted{owned("c", 7, "y")});
  ASSERT_EQ(store_.by_index(kOwnerUidIndex, "y").size(), 1U);
  EXPECT_EQ(metadata::name(*store_.by_index(kOwnerUidIndex, "y")[0]), "a");
  list({}, 9);
  EXPECT_TRUE(store_.by_index(kOwnerUidIndex, "y").empty());
}

TEST_F(ObjectStoreTest, ManagedFieldsAreDropped) {
  Json object = an_object("a", 1);
  object["metadata"]["managedFields"] = {{{"manager", "kubectl"}}};
  list({object}, 5);
  EXPECT_FALSE((*store_.find({"ns", "a"}))["metadata"].contains("managedFields"));
}

TEST_F(ObjectStoreTest, WhatIsNoObjectIsPassedOver) {
  store_.apply(ListBegins{});
  for (const Json& nonsense : {Json(), Json(7), Json::array(), Json{{"metadata", 7}}}) {
    store_.apply(Listed{nonsense});
  }
  store_.apply(ListEnds{"3"});
  EXPECT_EQ(store_.size(), 0U);
}

TEST(Trim, OfAPodWhatDecisionsRead) {
  Json pod = {{"metadata",
               {{"name", "p"},
                {"generation", 1},
                {"labels", {{"app", "x"}, {"training.coxswain.dev/attempt", "0"}}},
                {"annotations", {{"a", "b"}, {"training.coxswain.dev/spec-fingerprint", "f"}}},
                {"ownerReferences", {{{"uid", "u"}, {"controller", true}, {"blockOwnerDeletion", true}}}}}},
              {"spec",
               {{"nodeName", "n"},
                {"volumes", {1, 2}},
                {"containers", {{{"name", "trainer"}, {"env", {1}}, {"ports", {{{"containerPort", 1}}}}}}}}},
              {"status",
               {{"phase", "Running"},
                {"qosClass", "BestEffort"},
                {"conditions",
                 {{{"type", "Initialized"}, {"status", "True"}},
                  {{"type", "Ready"}, {"status", "True"}, {"lastProbeTime", nullptr}}}},
                {"containerStatuses",
                 {{{"name", "trainer"}, {"imageID", "i"}, {"state", {{"running", Json::object()}}}}}}}}};
  trim_pod(pod);
  EXPECT_EQ(pod, Json::parse(R"({
    "metadata": {"name": "p", "labels": {"training.coxswain.dev/attempt": "0"},
                 "annotations": {"training.coxswain.dev/spec-fingerprint": "f"},
                 "ownerReferences": [{"uid": "u", "controller": true}]},
    "spec": {"nodeName": "n", "containers": [{"name": "trainer", "ports": [{"containerPort": 1}]}]},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
               "containerStatuses": [{"name": "trainer", "state": {"running": {}}}]}})"));
}

TEST(Trim, WhatIsUnreadOfAPodIsDroppedAnyway) {
  for (const std::string& path : unread_of_pods()) {
    Json pod;
    // "spec/containers/*/env" as a JSON pointer to it in the first container.
    std::string pointer = "/" + path;
    if (const auto star = pointer.find('*'); star != std::string::npos) pointer.replace(star, 1, "0");
    pod["spec"]["containers"] = Json::array();
    pod[Json::json_pointer(pointer)] = {1};
    trim_pod(pod);
    EXPECT_FALSE(pod.contains(Json::json_pointer(pointer))) << path;
  }
}

TEST(Trim, ANodesHeartbeatIsNoChange) {
  Json node = {
      {"metadata", {{"name", "n"}, {"annotations", {{"a", "b"}}}}},
      {"spec", {{"podCIDR", "10.0.0.0/24"}, {"unschedulable", true}}},
      {"status",
       {{"images", {1, 2}},
        {"conditions",
         {{{"type", "Ready"}, {"status", "True"}, {"lastHeartbeatTime", "2026-01-01T00:00:00Z"}}}}}}};
  trim_node(node);
  EXPECT_EQ(node, (Json{{"metadata", {{"name", "n"}}},
                        {"spec", {{"unschedulable", true}}},
                        {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}}));
}

TEST(Trim, AnyShapeIsLeftAlone) {
  for (const Json& odd : {Json{{"spec", 7}, {"status", "x"}, {"metadata", 7}},
                          Json{{"spec", {{"containers", 7}}}, {"status", {{"conditions", 7}}}},
                          Json{{"spec", {{"containers", {7}}}}, {"status", {{"conditions", {7}}}}}}) {
    Json pod = odd;
    Json node = odd;
    trim_pod(pod);
    trim_node(node);
    EXPECT_TRUE(pod.is_object() && node.is_object());
  }
}

}  // namespace
}  // namespace coxswain
