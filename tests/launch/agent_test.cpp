// The agent with real processes: coxswain-runtime starts fake workers (fake_worker.cpp).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <vector>

#include "runtime/launch/ports.h"

namespace coxswain {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

template <typename Condition>
void wait_until(Condition condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

bool process_exists(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

int free_port() {
  return *find_free_port();
}

class AgentTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "coxswain-agent-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    const fs::path bin = fs::read_symlink("/proc/self/exe").parent_path();
    program_ = bin / "coxswain-runtime";
    write_config("base_model: m\nproject_name: p\nbackend: local\ndata: {path: d}\n");
    set("COXSWAIN_WORKER", (bin / "fake_worker").string());
    set("COXSWAIN_CONFIG", file("config.yaml"));
    set("COXSWAIN_TERMINATION_LOG", file("termination"));
    set("COXSWAIN_AGENT_PORT", std::to_string(agent_port_ = free_port()));
    set("MASTER_PORT", std::to_string(free_port()));
  }

  void TearDown() override {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    fs::remove_all(folder_);
  }

  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  void set(const std::string& name, const std::string& value) { environment_[name] = value; }
  void write_config(const std::string& yaml) { std::ofstream(file("config.yaml")) << yaml; }

  void start(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), program_.string());
    std::vector<std::string> variables = {"PATH=/usr/bin:/bin"};
    for (const auto& [name, value] : environment_) variables.push_back(name + "=" + value);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::dup2(::open(file("out").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0644), STDOUT_FILENO);
    ::dup2(::open(file("err").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0644), STDERR_FILENO);
    const auto pointers = [](std::vector<std::string>& strings) {
      std::vector<char*> result;
      for (std::string& string : strings) result.push_back(string.data());
      result.push_back(nullptr);
      return result;
    };
    ::execve(program_.c_str(), pointers(arguments).data(), pointers(variables).data());
    ::_exit(99);
  }

  int finish() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  int run(std::vector<std::string> arguments) {
    start(std::move(arguments));
    return finish();
  }

  pid_t pid_in(const std::string& name) {
    std::string text;
    wait_until([&] { return !(text = read_text(file(name))).empty(); });
    return static_cast<pid_t>(std::stol(text));
  }

  std::string out() const { return read_text(file("out")); }
  std::string err() const { return read_text(file("err")); }
  std::string termination() const { return read_text(file("termination")); }

  fs::path folder_;
  fs::path program_;
  std::map<std::string, std::string> environment_;
  int agent_port_ = 0;
  pid_t pid_ = -1;
};

TEST_F(AgentTest, GivesEachWorkerItsPlaceAndMarksItsLines) {
  set("NNODES", "1");
  set("NPROC_PER_NODE", "2");
  set("TRAINING_JOB_NAME", "j");
  set("FAKE_WORKER",
      "arguments show RANK show LOCAL_RANK show WORLD_SIZE show LOCAL_WORLD_SIZE show MASTER_ADDR show "
      "MASTER_PORT "
      "show TRAINING_JOB_NAME show OMP_NUM_THREADS show COXSWAIN_CONFIG complain oops exit 0");
  ASSERT_EQ(run({"launch"}), 0) << err();
  for (const std::string rank : {"0", "1"}) {
    const std::string prefix = "[rank " + rank + "] ";
    for (const std::string& line :
         {std::string("argument train"), "RANK=" + rank, "LOCAL_RANK=" + rank, std::string("WORLD_SIZE=2"),
          std::string("LOCAL_WORLD_SIZE=2"), std::string("MASTER_ADDR=127.0.0.1"),
          "MASTER_PORT=" + environment_["MASTER_PORT"], std::string("TRAINING_JOB_NAME=j"),
          "COXSWAIN_CONFIG=" + file("config.yaml")})
      EXPECT_THAT(out(), HasSubstr(prefix + line + "\n"));
    EXPECT_THAT(out(), testing::ContainsRegex("\\[rank " + rank + "\\] OMP_NUM_THREADS=[1-9]"));
    EXPECT_THAT(err(), HasSubstr(prefix + "oops\n"));
  }
  EXPECT_FALSE(fs::exists(file("termination")));
}

TEST_F(AgentTest, NumbersRanksAcrossNodesAndLeavesAnOuterThreadCountAlone) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener, 8), 0);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  set("MASTER_PORT", std::to_string(ntohs(address.sin_port)));
  set("NNODES", "3");
  set("NODE_RANK", "2");
  set("OMP_NUM_THREADS", "5");
  set("FAKE_WORKER", "show RANK show LOCAL_RANK show WORLD_SIZE show OMP_NUM_THREADS");
  EXPECT_EQ(run({"launch", "--nproc-per-node", "2"}), 0) << err();
  EXPECT_THAT(out(), AllOf(HasSubstr("RANK=4\n"), HasSubstr("RANK=5\n"), HasSubstr("WORLD_SIZE=6\n"),
                           HasSubstr("OMP_NUM_THREADS=5\n")));
  ::close(listener);
}

TEST_F(AgentTest, AJobThatIsFinishedWaitsForNobody) {
  fs::create_directories(file("recovery"));
  std::ofstream(file("recovery/FINISHED")) << "";
  set("COXSWAIN_RECOVERY_DIR", file("recovery"));
  set("TRAINING_JOB_UID", "u");
  set("TRAINING_JOB_ATTEMPT", "1");
  set("NNODES", "2");
  set("FAKE_WORKER", "exit 70");
  for (const char* node : {"0", "1"}) {
    set("NODE_RANK", node);
    EXPECT_EQ(run({"launch"}), 0) << err();
    EXPECT_THAT(err(), HasSubstr("there is nothing left to do"));
  }
}

TEST_F(AgentTest, AWorkerThatIsStoppedBeforeItListensWasStopped) {
  set("FAKE_WORKER", "touch " + file("started") + " forever");
  start({"launch"});
  pid_in("started");
  ::kill(pid_, SIGTERM);
  EXPECT_EQ(finish(), 75) << err();
  EXPECT_FALSE(fs::exists(file("termination")));
}

TEST_F(AgentTest, ClientsThatAreSlowWithTheirRequestsHoldNothingUp) {
  set("FAKE_WORKER", "touch " + file("started") + " wait " + file("end") + " exit 0");
  start({"launch"});
  pid_in("started");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(agent_port_));
  std::vector<int> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(clients.back(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_GT(::send(clients.back(), "GET / HTTP/1.1\r\nX: ", 19, 0), 0);
  }
  std::jthread drip([&](std::stop_token stop) {  // a byte now and then keeps a request from timing out
    while (!stop.stop_requested()) {
      for (const int client : clients) ::send(client, "x", 1, MSG_NOSIGNAL);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  const auto answer = httplib::Client("127.0.0.1", agent_port_).Get("/progress");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  std::ofstream(file("end")) << "";
  EXPECT_EQ(finish(), 0) << err();
  drip.request_stop();
  drip.join();
  for (const int client : clients) ::close(client);
}

TEST_F(AgentTest, PassesOneWorkersOutputOnUntouched) {
  set("FAKE_WORKER", "say hello complain oops exit 0");
  ASSERT_EQ(run({"launch"}), 0);
  EXPECT_EQ(out(), "hello\n");
  EXPECT_THAT(err(), testing::EndsWith("oops\n"));
}

TEST_F(AgentTest, TheErrorThatAWorkerReportsBecomesTheTerminationMessage) {
  set("FAKE_WORKER_0", "wait " + file("reported") + " exit 76");
  set("FAKE_WORKER_1",
      R"(progress {"event":"error","exit_code":74,"message":"can't write model.safetensors"}; touch )" +
          file("reported") + " exit 74");
  EXPECT_EQ(run({"launch", "--nproc-per-node", "2"}), 74);
  EXPECT_EQ(termination(), "rank 1: can't write model.safetensors");
}

TEST_F(AgentTest, WithoutAReportTheLastWordsOnStderrDo) {
  set("FAKE_WORKER", "complain first complain last abort");
  EXPECT_EQ(run({"launch"}), 128 + SIGABRT);
  EXPECT_THAT(termination(), AllOf(HasSubstr("rank 0: killed by signal 6"), HasSubstr("first\nlast")));
}

TEST_F(AgentTest, AWorkersFailureEndsTheOthersThoughTheyDoNotListen) {
  set("FAKE_WORKER_0", "deaf touch " + file("deaf") + " forever");
  set("FAKE_WORKER_1", "wait " + file("deaf") + " exit 70");
  EXPECT_EQ(run({"launch", "--nproc-per-node", "2", "--kill-after", "0.1"}), 70);
  EXPECT_FALSE(process_exists(pid_in("deaf")));
  EXPECT_THAT(termination(), HasSubstr("rank 1: ended with exit code 70"));
}

TEST_F(AgentTest, OneWorkersSuccessLeavesTheOthersAlone) {
  set("FAKE_WORKER_0", "exit 0");
  set("FAKE_WORKER_1", "listen touch " + file("up") + " wait " + file("go") + " say finished exit 0");
  start({"launch", "--nproc-per-node", "2", "--kill-after", "0"});
  pid_in("up");
  std::ofstream(file("go")) << "go";
  EXPECT_EQ(finish(), 0);
  EXPECT_THAT(out(), HasSubstr("finished"));
}

TEST_F(AgentTest, PassesSigtermOnAndEndsAsTheWorkersDo) {
  for (const int signal : {SIGTERM, SIGINT}) {
    fs::remove(file("up0"));
    fs::remove(file("up1"));
    set("FAKE_WORKER_0", "listen touch " + file("up0") + " until-term say saved exit 75");
    set("FAKE_WORKER_1", "listen touch " + file("up1") + " until-term exit 75");
    start({"launch", "--nproc-per-node", "2"});
    pid_in("up0");
    pid_in("up1");
    ::kill(pid_, signal);
    EXPECT_EQ(finish(), 75);
    EXPECT_THAT(out(), HasSubstr("saved"));
    EXPECT_FALSE(fs::exists(file("termination")));
  }
}

TEST_F(AgentTest, ASecondInterruptKills) {
  set("FAKE_WORKER", "deaf touch " + file("up") + " forever");
  start({"launch"});
  pid_in("up");
  ::kill(pid_, SIGINT);
  wait_until([&] { return err().find("Stopping") != std::string::npos; });
  ::kill(pid_, SIGINT);
  EXPECT_EQ(finish(), 128 + SIGKILL);
}

TEST_F(AgentTest, KilledItselfItLeavesNoWorker) {
  set("FAKE_WORKER", "deaf touch " + file("up") + " forever");
  start({"launch"});
  const pid_t worker = pid_in("up");
  ::kill(pid_, SIGKILL);
  EXPECT_EQ(finish(), -SIGKILL);
  wait_until([&] {
    // An orphan may stay a zombie where nobody reaps; it runs no more.
    return !process_exists(worker) ||
           read_text("/proc/" + std::to_string(worker) + "/stat").find(") Z") != std::string::npos;
  });
}

TEST_F(AgentTest, ReapsOrphans) {
  set("FAKE_WORKER", "orphan " + file("orphan") + " wait " + file("go") + " exit 0");
  start({"launch"});
  const pid_t orphan = pid_in("orphan");
  wait_until([&] { return !process_exists(orphan); });  // a zombie would still exist
  std::ofstream(file("go")) << "go";
  EXPECT_EQ(finish(), 0);
}

TEST_F(AgentTest, ServesProgressMetricsAndHealth) {
  set("TRAINING_JOB_NAME", "j");
  set("TRAINING_JOB_ATTEMPT", "2");
  set("FAKE_WORKER",
      R"(progress {"event":"phase","phase":"train"}; progress {"event":"step","step":3,"total_steps":9,"loss":1.5}; )"
      "touch " +
          file("up") + " wait " + file("go"));
  start({"launch"});
  pid_in("up");
  httplib::Client client("127.0.0.1", agent_port_);
  nlohmann::json progress;
  wait_until([&] {
    const httplib::Result response = client.Get("/progress");
    if (!response) return false;
    progress = nlohmann::json::parse(response->body);
    return progress["workers"][0].contains("step");
  });
  EXPECT_EQ(progress["job"], "j");
  EXPECT_EQ(progress["attempt"], 2);
  EXPECT_EQ(progress["workers"][0]["phase"], "train");
  EXPECT_EQ(progress["workers"][0]["step"], 3);
  EXPECT_EQ(progress["workers"][0]["loss"], 1.5);
  const httplib::Result metrics = client.Get("/metrics");
  ASSERT_TRUE(metrics);
  EXPECT_THAT(metrics->body, HasSubstr("coxswain_step{rank=\"0\"} 3"));
  const httplib::Result health = client.Get("/healthz");
  ASSERT_TRUE(health);
  EXPECT_EQ(health->status, 200);

#ifndef __SANITIZE_ADDRESS__
  std::istringstream statm(read_text("/proc/" + std::to_string(pid_) + "/statm"));
  int64_t total = 0;
  int64_t resident = 0;
  statm >> total >> resident;
  EXPECT_LT(resident * ::sysconf(_SC_PAGESIZE), 64 << 20);
#endif
  std::ofstream(file("go")) << "go";
  EXPECT_EQ(finish(), 0);
}

TEST_F(AgentTest, ABadConfigurationStartsNoWorker) {
  set("FAKE_WORKER", "touch " + file("started"));
  write_config("base_model: m\nproject_name: p\ndata: {path: d}\nparams: {batchsize: 2}\n");
  EXPECT_EQ(run({"launch"}), 2);
  EXPECT_FALSE(fs::exists(file("started")));
  EXPECT_THAT(termination(),
              HasSubstr("line 4: unknown key params.batchsize; did you mean params.batch_size?"));
  EXPECT_EQ(err(), "coxswain: " + termination() + "\n");
  environment_.erase("COXSWAIN_CONFIG");
  EXPECT_EQ(run({"launch"}), 2);
  EXPECT_THAT(err(), HasSubstr("give --config FILE"));
  EXPECT_EQ(run({"--no-such-flag"}), 2);
}

TEST_F(AgentTest, ATakenPortIsNamed) {
  set("FAKE_WORKER", "touch " + file("started"));
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  const std::string taken = std::to_string(ntohs(address.sin_port));
  for (const char* name : {"MASTER_PORT", "COXSWAIN_AGENT_PORT"}) {
    const std::string free = std::exchange(environment_[name], taken);
    EXPECT_EQ(run({"launch"}), 78);
    EXPECT_THAT(termination(), AllOf(HasSubstr(name), HasSubstr(taken)));
    environment_[name] = free;
  }
  EXPECT_FALSE(fs::exists(file("started")));
  ::close(listener);
}

TEST_F(AgentTest, GivesUpOnAMasterThatDoesNotAnswer) {
  set("NNODES", "2");
  set("NODE_RANK", "1");
  EXPECT_EQ(run({"launch", "--start-timeout", "0.05"}), 77);
  EXPECT_THAT(err(), HasSubstr("Waiting for the master at 127.0.0.1:" + environment_["MASTER_PORT"]));
  EXPECT_THAT(termination(), HasSubstr("and give up"));
}

TEST_F(AgentTest, StopsWhileItWaitsForTheMaster) {
  set("NNODES", "2");
  set("NODE_RANK", "1");
  start({"launch"});
  wait_until([&] { return err().find("Waiting for") != std::string::npos; });
  ::kill(pid_, SIGTERM);
  EXPECT_EQ(finish(), 75);
}

TEST_F(AgentTest, LlmFlagsReachTheWorkersAsAConfiguration) {
  environment_.erase("COXSWAIN_CONFIG");
  set("FAKE_WORKER", "config");
  EXPECT_EQ(run({"llm", "--train", "--model", "m", "--data-path", "d", "--project-name", "p", "--peft",
                 "--lr", "1e-4", "--nproc-per-node", "2"}),
            0)
      << err();
  for (const char* line : {"base_model: m", "project_name: p", "  path: d", "  peft: true", "  lr: 1e-4"})
    for (const char* rank : {"0", "1"})
      EXPECT_THAT(out(), HasSubstr("[rank " + std::string(rank) + "] " + line + "\n"));
  EXPECT_EQ(run({"llm", "--train", "--model", "m"}), 2);
  EXPECT_THAT(err(), HasSubstr("--project-name is missing"));
}

TEST_F(AgentTest, SetOverridesTheFile) {
  set("FAKE_WORKER", "config");
  EXPECT_EQ(run({"--config", file("config.yaml"), "--set", "lr=7e-5", "--set", "target_modules=[a, b]"}), 0)
      << err();
  EXPECT_THAT(out(), AllOf(HasSubstr("lr: 7e-5"), HasSubstr("base_model: m")));
}

TEST_F(AgentTest, AMissingWorkerProgramIsSaid) {
  set("COXSWAIN_WORKER", file("nothing"));
  EXPECT_EQ(run({"launch"}), 70);
  EXPECT_THAT(err(), HasSubstr("nothing is not there"));
}

TEST_F(AgentTest, TheWorkersOwnCommandsBecomeTheWorkerProgram) {
  set("FAKE_WORKER", "arguments exit 7");
  EXPECT_EQ(run({"train", "--config", "x"}), 7);
  EXPECT_EQ(out(), "argument train\nargument --config\nargument x\n");
  EXPECT_EQ(run({"env", "--json"}), 7);
  EXPECT_EQ(out(), "argument env\nargument --json\n");
  EXPECT_EQ(run({"generate", "--help"}), 7);
  EXPECT_EQ(out(), "argument generate\nargument --help\n");
}

TEST_F(AgentTest, HelpAndVersionSayHowToGoOn) {
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_THAT(out(), AllOf(HasSubstr("coxswain-runtime --config train.yaml"), HasSubstr("launch"),
                           HasSubstr("Exit codes")));
  EXPECT_EQ(run({"llm", "--help"}), 0);
  EXPECT_THAT(out(), AllOf(HasSubstr("--merge-adapter, --no-merge-adapter"), HasSubstr("--batch-size")));
  EXPECT_EQ(run({"--version"}), 0);
  EXPECT_THAT(out(), testing::StartsWith("coxswain-runtime 0."));
  EXPECT_EQ(run({"keys"}), 0);
  EXPECT_THAT(out(), HasSubstr("| `params.lr` | `--lr` |"));
}

}  // namespace
}  // namespace coxswain
