// A pod that does not start says why, at once and in plain words; the startup deadline ends it.
#include <gtest/gtest.h>

#include "operator/reconcile/startup_trouble.h"
#include "tests/operator_core/harness.h"

namespace coxswain::testing {
namespace {

using namespace std::chrono_literals;

struct Case {
  Waiting waiting;
  const char* reason;
  const char* sentence;
};

TEST(StartupTrouble, SaysInPlainWordsWhatKeepsAPod) {
  const Case cases[] = {
      {{"trainer", false, "ErrImagePull", "manifest unknown"},
       "ImagePullFailed",
       "Pod j-0 cannot pull the image of its container trainer (ErrImagePull): manifest unknown"},
      {{"trainer", false, "ImagePullBackOff", "Back-off pulling image \"x\""},
       "ImagePullFailed",
       "Pod j-0 cannot pull the image of its container trainer (ImagePullBackOff): Back-off pulling image "
       "\"x\""},
      {{"fetch", true, "InvalidImageName", "couldn't parse image"},
       "ImagePullFailed",
       "Pod j-0 cannot pull the image of its init container fetch (InvalidImageName): couldn't parse image"},
      {{"trainer", false, "CreateContainerConfigError", "secret \"s\" not found"},
       "ContainerConfigError",
       "Pod j-0 cannot set up its container trainer (CreateContainerConfigError): secret \"s\" not found"},
      {{"trainer", false, "RunContainerError", "no such file"},
       "ContainerStartError",
       "Pod j-0 cannot start its container trainer (RunContainerError): no such file"},
      {{"proxy", true, "CrashLoopBackOff", "back-off 10s"},
       "InitContainerFailed",
       "Pod j-0 waits for its init container proxy (CrashLoopBackOff): back-off 10s"},
      {{"", false, "Unschedulable", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."},
       "Unschedulable",
       "Pod j-0 cannot be scheduled: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu."},
      {{"", false, "SchedulingGated", ""}, "SchedulingGated", "Pod j-0 is held back by a scheduling gate."},
      {{"trainer", false, "SomethingNew", "words"}, "SomethingNew", "Pod j-0 does not start: words"},
  };
  for (const Case& one : cases) {
    World world;
    world.settle();
    world.pod(0).waiting = one.waiting;
    world.settle();
    EXPECT_EQ(world.reason(kConditionReconciling), one.reason);
    EXPECT_EQ(world.said(kConditionReconciling), one.sentence);
    EXPECT_EQ(world.said(kConditionReady), one.sentence);
    EXPECT_EQ(world.has_event(one.reason), std::string(one.reason) != "SchedulingGated");
  }
}

TEST(StartupTrouble, TheReasonStaysWhileTheKubeletChangesBetweenItsWords) {
  World world;
  world.settle();
  for (int i = 0; i < 6; ++i) {
    world.pod(0).waiting = Waiting{"trainer", false, i % 2 == 0 ? "ErrImagePull" : "ImagePullBackOff", ""};
    world.settle();
    EXPECT_EQ(world.reason(kConditionReconciling), "ImagePullFailed");
  }
  EXPECT_EQ(std::count_if(world.events.begin(), world.events.end(),
                          [](const Event& event) { return event.reason == "ImagePullFailed"; }),
            1);
}

TEST(StartupTrouble, WhatNoWaitingCuresComesBeforeWhatMayPass) {
  World world("{nodes: 4}");
  world.settle();
  world.pod(0).waiting = Waiting{"", false, "Unschedulable", "no room"};
  world.pod(2).waiting = Waiting{"trainer", false, "ErrImagePull", "no such image"};
  world.pod(3).waiting = Waiting{"trainer", false, "ImagePullBackOff", "no such image"};
  world.settle();
  EXPECT_EQ(world.said(kConditionReconciling),
            "Pod j-2 cannot pull the image of its container trainer (ErrImagePull): no such image. So it is "
            "with 2 of 4 pods.");
}

// The kubelet tells of a sandbox that fails in events only; the pod's condition says that there is none.
TEST(StartupTrouble, ASandboxThatIsNotThereIsSaidAfterAWhile) {
  World world;
  world.settle();
  ObservedPod& pod = world.pod(0);
  pod.node = "gpu-7";
  pod.bound = world.now;
  pod.sandbox_missing = true;
  world.settle();
  EXPECT_EQ(world.reason(kConditionReconciling), "Starting");
  EXPECT_EQ(world.requeue_after, Duration(30s)) << "nothing else wakes it for that";
  world.advance(30s);
  world.settle();
  EXPECT_EQ(world.reason(kConditionReconciling), "SandboxNotReady");
  EXPECT_NE(world.said(kConditionReconciling).find("gpu-7"), std::string::npos);
}

TEST(StartupTrouble, AnInitContainerAtWorkIsNoTrouble) {
  World world;
  world.settle();
  world.pod(0).running_init = "fetch";
  world.settle();
  EXPECT_EQ(world.reason(kConditionReconciling), "Starting");
  EXPECT_NE(world.said(kConditionReconciling).find("init container fetch of pod j-0"), std::string::npos);
}

TEST(StartupTrouble, AnInitContainerThatFailsIsTheCauseByItsName) {
  World world;
  world.settle();
  world.pod(0).phase = PodPhase::kFailed;
  world.pod(0).failed_init = FailedInit{"fetch", 3, "no such bucket"};
  world.advance(3s);
  world.settle();
  EXPECT_EQ(world.cause(), "InitContainerFailed");
  EXPECT_EQ(world.job.status.last_failure->exit_code, 3);
  EXPECT_EQ(world.job.status.last_failure->message,
            "Init container fetch of pod j-0 ended with exit code 3 (InitContainerFailed): no such bucket");
}

// Half of a UTF-8 character cannot be written as JSON.
TEST(StartupTrouble, LongWordsAreCutBetweenCharacters) {
  for (size_t shift = 0; shift < 4; ++shift) {
    std::string words(shift, 'x');
    for (int i = 0; i < 1000; ++i) words += "\xC3\xA9";  // é
    World world;
    world.settle();
    world.pod(0).waiting = Waiting{"trainer", false, "ErrImagePull", words};
    world.settle();
    EXPECT_LE(world.said(kConditionReconciling).size(), 900U);
    EXPECT_NO_THROW(Json(world.said(kConditionReconciling)).dump());
    EXPECT_NO_THROW(Json(world.events.back().message).dump());
  }
}

TEST(StartupTrouble, TheDeadlineNamesIt) {
  World world("{runPolicy: {startupDeadlineSeconds: 100, backoffLimit: 0}}");
  world.settle();
  world.pod(0).waiting = Waiting{"trainer", false, "ErrImagePull", "no such image"};
  world.advance(100s);
  world.settle();
  EXPECT_EQ(world.reason(kConditionFailed), "BackoffLimitExceeded");
  EXPECT_NE(world.said(kConditionFailed).find("no such image"), std::string::npos);
}

}  // namespace
}  // namespace coxswain::testing
