// `coxswain run` from outside: small shell programs stand for training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/parse.h"
#include "tests/cli/program.h"

namespace coxswain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

class RunTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;

  // A job "j" whose trainer is a shell script; `spec` is more of the spec, indented by two.
  void manifest(const std::string& script, int nodes = 2, const std::string& spec = "") {
    std::ofstream(folder_.path / "trainer.sh") << script;
    std::ofstream(folder_.path / "job.yaml")
        << "apiVersion: training.coxswain.dev/v1alpha1\n"
        << "kind: TrainingJob\nmetadata: {name: j}\nspec:\n"
        << "  nodes: " << nodes << "\n"
        << spec << "  template: {spec: {containers: [{name: trainer, image: none, "
        << "command: [sh, " << (folder_.path / "trainer.sh").string() << "]}]}}\n";
  }

  std::vector<std::string> run(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"run", "job.yaml"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  std::string here(const std::string& file) { return read_file(folder_.path / file); }

  static bool alive(const std::string& pid) {
    return !pid.empty() && fs::exists("/proc/" + pid.substr(0, pid.find('\n')));
  }
};

TEST_F(RunTest, AJobThatSucceedsExitsWithZero) {
  manifest(
      "echo rank $RANK of $WORLD_SIZE at $MASTER_ADDR; echo $MASTER_PORT > "
      "\"$COXSWAIN_OUTPUT_DIR-port-$RANK\"");
  Program program(folder_.path, run({"--follow"}));
  EXPECT_EQ(program.wait(), 0) << program.output();
  EXPECT_THAT(program.output(), HasSubstr("j-0 | rank 0 of 2 at 127.0.0.1"));
  EXPECT_THAT(program.output(), HasSubstr("j-1 | rank 1 of 2 at 127.0.0.1"));
  EXPECT_THAT(program.output(), HasSubstr((folder_.path / "coxswain-output/j").string()));
  EXPECT_FALSE(here("coxswain-output/j-port-0").empty());
  EXPECT_EQ(here("coxswain-output/j-port-0"), here("coxswain-output/j-port-1"));
}

TEST_F(RunTest, WithoutFollowOnlyRankZeroIsPrintedAndAllIsKept) {
  manifest("echo hello from $RANK");
  Program program(folder_.path, run());
  EXPECT_EQ(program.wait(), 0) << program.output();
  EXPECT_THAT(program.output(), HasSubstr("j-0 | hello from 0"));
  EXPECT_THAT(program.output(), Not(HasSubstr("hello from 1")));
  EXPECT_EQ(here("coxswain-output/j/.state/logs/j-1.attempt-0.log"), "hello from 1\n");
}

TEST_F(RunTest, ProcessesShareTheCores) {
  manifest("echo $OMP_NUM_THREADS threads", 1, "  processesPerNode: 1000\n");
  unsetenv("OMP_NUM_THREADS");
  Program shared(folder_.path, run());
  EXPECT_EQ(shared.wait(), 0) << shared.output();
  EXPECT_THAT(shared.output(), HasSubstr("j-0 | 1 threads"));
  manifest("echo $OMP_NUM_THREADS threads", 1, "  env: [{name: OMP_NUM_THREADS, value: '7'}]\n");
  Program own(folder_.path, run());
  EXPECT_EQ(own.wait(), 0) << own.output();
  EXPECT_THAT(own.output(), HasSubstr("j-0 | 7 threads"));
}

TEST_F(RunTest, AFailingRankRestartsAllOfThem) {
  manifest(
      "echo attempt $TRAINING_JOB_ATTEMPT\n"
      "[ $TRAINING_JOB_ATTEMPT = 1 ] && exit 0\n"
      "[ $RANK = 1 ] && { echo 'no luck' > $COXSWAIN_TERMINATION_LOG; exit 9; }\n"
      "sleep 1000\n");
  Program program(folder_.path, run());
  EXPECT_EQ(program.wait(), 0) << program.output();
  EXPECT_THAT(program.output(), HasSubstr("j-0 | attempt 0"));
  EXPECT_THAT(program.output(), HasSubstr("j-0 | attempt 1"));
  EXPECT_THAT(program.output(), HasSubstr("exit code 9"));
  EXPECT_THAT(program.output(), HasSubstr("no luck"));
}

TEST_F(RunTest, AKilledPodRestartsTheGang) {
  manifest(
      "[ $TRAINING_JOB_ATTEMPT = 1 ] && exit 0\n"
      "[ $RANK = 1 ] && kill -9 $$\n"
      "sleep 1000\n");
  Program program(folder_.path, run());
  EXPECT_EQ(program.wait(), 0) << program.output();
  EXPECT_THAT(program.output(), HasSubstr("exit code 137"));
}

TEST_F(RunTest, AJobThatFailsExitsWithItsCode) {
  manifest("exit 7", 1, "  runPolicy: {backoffLimit: 0}\n");
  Program program(folder_.path, run());
  EXPECT_EQ(program.wait(), 7) << program.output();
  EXPECT_THAT(program.output(), HasSubstr("logs"));
}

TEST_F(RunTest, TheLastOutputIsTheMessageWhereTheTemplateAsksForIt) {
  manifest("echo the last words; exit 7", 1, "  runPolicy: {backoffLimit: 0}\n");
  std::string text = here("job.yaml");
  text.insert(text.find("image: none"), "terminationMessagePolicy: FallbackToLogsOnError, ");
  std::ofstream(folder_.path / "job.yaml") << text;
  Program program(folder_.path, run());
  EXPECT_EQ(program.wait(), 7) << program.output();
  EXPECT_THAT(program.output(), HasSubstr("(Error): the last words"));
}

TEST_F(RunTest, AnUnmappedClaimIsNamedWithTheFlag) {
  manifest("true", 1, "  output: {claimName: results}\n");
  Program refused(folder_.path, run());
  EXPECT_EQ(refused.wait(), 2);
  EXPECT_THAT(refused.output(), HasSubstr("--volume results=DIR"));
  EXPECT_FALSE(fs::exists(folder_.path / "coxswain-output")) << "nothing has been begun";
}

TEST_F(RunTest, AMappedClaimIsTheFolderAndPathsAreRewritten) {
  manifest("echo $DATA > $COXSWAIN_OUTPUT_DIR-data; cat $DATA/a", 1,
           "  output: {claimName: results}\n"
           "  env: [{name: DATA, value: /data/sub}]\n"
           "  volumes: [{name: d, persistentVolumeClaim: {claimName: set}}]\n"
           "  volumeMounts: [{name: d, mountPath: /data}]\n");
  fs::create_directories(folder_.path / "mine/sub");
  std::ofstream(folder_.path / "mine/sub/a") << "content\n";
  Program program(folder_.path, run({"--volume", "results=out", "--volume", "set=mine"}));
  EXPECT_EQ(program.wait(), 0) << program.output();
  EXPECT_EQ(here("out/j-data"), (folder_.path / "mine/sub").string() + "\n");
  EXPECT_THAT(program.output(), HasSubstr("j-0 | content"));
}

TEST_F(RunTest, CtrlCSuspendsAndTheSameCommandGoesOnAsTheSameJob) {
  manifest(
      "echo $TRAINING_JOB_UID >> $COXSWAIN_OUTPUT_DIR-uids\n"
      "[ -e $COXSWAIN_OUTPUT_DIR-saved ] && exit 0\n"
      "trap 'touch $COXSWAIN_OUTPUT_DIR-saved; exit 75' TERM\n"
      "echo training; while :; do sleep 0.1; done\n",
      1);
  {
    Program program(folder_.path, run());
    ASSERT_TRUE(program.says("j-0 | training")) << program.output();
    program.signal(SIGINT);
    EXPECT_EQ(program.wait(), 75) << program.output();
    EXPECT_THAT(program.output(), HasSubstr("goes on"));
  }
  ASSERT_TRUE(fs::exists(folder_.path / "coxswain-output/j-saved"));
  Program program(folder_.path, run());
  EXPECT_EQ(program.wait(), 0) << program.output();
  const std::string uids = here("coxswain-output/j-uids");
  EXPECT_EQ(uids.substr(0, uids.size() / 2), uids.substr(uids.size() / 2)) << "resumed under its UID";
  Program fresh(folder_.path, run());
  EXPECT_EQ(fresh.wait(), 0) << fresh.output();
  const std::string later = here("coxswain-output/j-uids").substr(uids.size());
  EXPECT_NE(later, uids.substr(0, uids.size() / 2)) << "a finished job starts as a new one";
}

TEST_F(RunTest, AJobThatIsDeletedAtItsEndHasEnded) {
  for (int i = 0; i < 5; ++i) {
    manifest("true", 2, "  runPolicy: {ttlSecondsAfterFinished: 0}\n");
    Program program(folder_.path, run());
    EXPECT_EQ(program.wait(), 0) << program.output();
    EXPECT_THAT(here("coxswain-output/j/.state/job.json"), HasSubstr("\"Complete\""));
  }
  manifest("exit 3", 2, "  runPolicy: {ttlSecondsAfterFinished: 0, backoffLimit: 0}\n");
  Program program(folder_.path, run());
  EXPECT_EQ(program.wait(), 3) << program.output();
}

TEST_F(RunTest, ASuspendedJobMayChangeOnlyWhatIsMutable) {
  manifest("trap 'exit 75' TERM; echo training; while :; do sleep 0.1; done\n", 1);
  {
    Program program(folder_.path, run());
    ASSERT_TRUE(program.says("training")) << program.output();
    program.signal(SIGINT);
    EXPECT_EQ(program.wait(), 75) << program.output();
  }
  Program refused(folder_.path, run({"--set", "runPolicy.backoffLimit=9"}));
  EXPECT_EQ(refused.wait(), 2) << refused.output();
  EXPECT_THAT(refused.output(), HasSubstr("backoffLimit"));
  Program changed(folder_.path, run({"--set", "nodes=2"}));
  ASSERT_TRUE(changed.says("2 of 2 pods ready")) << changed.output();
}

TEST_F(RunTest, ASecondCtrlCKills) {
  manifest("trap '' TERM; echo training; while :; do sleep 0.1; done\n", 1);
  Program program(folder_.path, run());
  ASSERT_TRUE(program.says("training")) << program.output();
  program.signal(SIGINT);
  ASSERT_TRUE(program.says("stopping"));
  program.signal(SIGINT);
  EXPECT_EQ(program.wait(), 130) << program.output();
}

TEST_F(RunTest, ASecondRunOfTheSameJobIsRefused) {
  manifest("echo training; sleep 1000\n", 1);
  Program first(folder_.path, run());
  ASSERT_TRUE(first.says("training")) << first.output();
  Program second(folder_.path, run());
  EXPECT_EQ(second.wait(), 1);
  EXPECT_THAT(second.output(), HasSubstr("already running"));
}

TEST_F(RunTest, NothingOutlivesAKilledCoxswain) {
  // A program, its child, and a grandchild that has left the process group.
  manifest(
      "echo $$ > $COXSWAIN_OUTPUT_DIR-a; sleep 1000 & echo $! > $COXSWAIN_OUTPUT_DIR-b\n"
      "(setsid sh -c \"echo \\$\\$ > $COXSWAIN_OUTPUT_DIR-c; sleep 1000\" &)\n"
      "while [ ! -s $COXSWAIN_OUTPUT_DIR-c ]; do sleep 0.05; done; echo training; wait\n",
      1);
  Program program(folder_.path, run());
  ASSERT_TRUE(program.says("training")) << program.output();
  program.signal(SIGKILL);
  EXPECT_EQ(program.wait(), 137);
  for (const char* file : {"coxswain-output/j-a", "coxswain-output/j-b", "coxswain-output/j-c"}) {
    const std::string pid = here(file);
    ASSERT_FALSE(pid.empty()) << file;
    EXPECT_TRUE(eventually([&] { return !alive(pid); })) << file;
  }
}

TEST_F(RunTest, AKilledCoxswainGoesOnWithTheSameJob) {
  manifest(
      "echo $TRAINING_JOB_UID >> $COXSWAIN_OUTPUT_DIR-uids\n"
      "[ $TRAINING_JOB_ATTEMPT = 0 ] || exit 0\n"
      "echo training; sleep 1000\n",
      1);
  {
    Program program(folder_.path, run());
    ASSERT_TRUE(program.says("training")) << program.output();
    program.signal(SIGKILL);
    program.wait();
  }
  Program program(folder_.path, run());
  EXPECT_EQ(program.wait(), 0) << program.output();
  const std::string uids = here("coxswain-output/j-uids");
  EXPECT_EQ(uids.substr(0, uids.size() / 2), uids.substr(uids.size() / 2));
}

TEST_F(RunTest, InitContainersRunFirstAndInOrder) {
  manifest("true", 1);
  std::ofstream(folder_.path / "job.yaml")
      << "apiVersion: training.coxswain.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j}\nspec:\n"
      << "  volumes: [{name: w, emptyDir: {}}]\n  volumeMounts: [{name: w, mountPath: /w}]\n"
      << "  env: [{name: W, value: /w/log}]\n"
      << "  template: {spec: {initContainers: [\n"
      << "    {name: one, image: none, command: [sh, -c, 'echo 1 >> $W'], env: [{name: W, value: /w/log}], "
      << "volumeMounts: [{name: w, mountPath: /w}]},\n"
      << "    {name: two, image: none, command: [sh, -c, 'echo 2 >> $W'], env: [{name: W, value: /w/log}], "
      << "volumeMounts: [{name: w, mountPath: /w}]}],\n"
      << "    containers: [{name: trainer, image: none, command: [sh, -c, 'echo $(cat $W | tr -d "
         "\"\\n\")']}]}}\n";
  Program program(folder_.path, run());
  EXPECT_EQ(program.wait(), 0) << program.output();
  EXPECT_THAT(program.output(), HasSubstr("j-0 | 12"));
}

TEST_F(RunTest, BadSettingsAreRefusedWithTheFieldNamed) {
  manifest("true", 1);
  const std::pair<const char*, const char*> cases[] = {{"nods=3", "spec.nods"},
                                                       {"nodes=0", "spec.nodes"},
                                                       {"nodes", "PATH=VALUE"},
                                                       {"runPolicy.backoffLimit=x", "backoffLimit"}};
  for (const auto& [setting, named] : cases) {
    Program program(folder_.path, run({"--set", setting}));
    EXPECT_EQ(program.wait(), 2) << setting << "\n" << program.output();
    EXPECT_THAT(program.output(), HasSubstr(named)) << setting;
  }
}

TEST_F(RunTest, APartOfThePodThatAnApiServerWouldRefuseIsRefusedWithItsField) {
  manifest("true");
  for (const auto& [setting, field] :
       {std::pair{"template.spec.containers.0.args=[--steps, 10]",
                  "spec.template.spec.containers[0].args[1]"},
        {"template.spec.containers.0.env=[{name: A, value: 1}]",
         "spec.template.spec.containers[0].env[0].value"},
        {"volumes=[{name: v, persistentVolumeClaim: models}]", "spec.volumes[0].persistentVolumeClaim"},
        {"template.spec.containers.99999999999999999999.image=x", "is no element"}}) {
    Program program(folder_.path, run({"--set", setting}));
    EXPECT_EQ(program.wait(), 2) << program.output();
    EXPECT_THAT(program.output(), HasSubstr(field));
  }
}

TEST_F(RunTest, AProgramThatIsNotHereIsSaidBeforeAnythingStarts) {
  manifest("true", 1);
  std::ofstream(folder_.path / "job.yaml")
      << "apiVersion: training.coxswain.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j}\nspec:\n"
      << "  template: {spec: {containers: [{name: trainer, image: none, command: [no-such-program]}]}}\n";
  Program program(folder_.path, run());
  EXPECT_EQ(program.wait(), 2);
  EXPECT_THAT(program.output(), HasSubstr("no-such-program"));
}

TEST_F(RunTest, ValidateTellsEveryProblemAndRenderShowsTheChildren) {
  manifest("true", 2);
  Program rendered(folder_.path, {"render", "job.yaml"});
  EXPECT_EQ(rendered.wait(), 0) << rendered.output();
  EXPECT_THAT(rendered.output(), HasSubstr("kind: Service"));
  EXPECT_THAT(rendered.output(), HasSubstr("name: j-1"));
  Program valid(folder_.path, {"validate", "job.yaml"});
  EXPECT_EQ(valid.wait(), 0) << valid.output();

  std::ofstream(folder_.path / "bad.yaml")
      << "apiVersion: training.coxswain.dev/v1alpha1\nkind: TrainingJob\n"
      << "metadata: {name: Bad_Name}\nspec: {nodes: 0, nonsense: 1}\n";
  Program invalid(folder_.path, {"validate", "bad.yaml", "job.yaml", "missing.yaml"});
  EXPECT_EQ(invalid.wait(), 2);
  for (const char* named : {"bad.yaml: metadata.name", "bad.yaml: spec.nodes", "nonsense", "missing.yaml"}) {
    EXPECT_THAT(invalid.output(), HasSubstr(named));
  }
}

// The table that the API server and validate() are held to (tests/operator_core, tests/integration).
TEST_F(RunTest, ValidateRefusesTheBadManifestsOfTheTableByTheFieldThatIsWrong) {
  const Json table = load_yaml_file("tests/operator_core/manifests.yaml").value().front();
  std::vector<std::string> arguments = {"validate"};
  std::vector<std::string> expected;
  for (const Json& test : table["cases"]) {
    if (!test.contains("field") || !test.contains("create")) continue;
    Json manifest = table["base"];
    manifest.merge_patch(test["create"]);
    const std::string file = "bad-" + std::to_string(expected.size()) + ".yaml";
    std::ofstream(folder_.path / file) << manifest;
    arguments.push_back(file);
    expected.push_back(file + ": " + test["field"].get<std::string>());
  }
  ASSERT_GT(expected.size(), 50U);
  Program program(folder_.path, arguments);
  EXPECT_EQ(program.wait(), 2);
  const std::string output = program.output();
  for (const std::string& line : expected)
    EXPECT_NE(output.find(line), std::string::npos) << line << "\n" << output;
}

}  // namespace
}  // namespace coxswain
