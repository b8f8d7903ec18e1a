#include "cli/process_node/process_node.h"

#include <arpa/inet.h>
#include <httplib.h>
#include <netinet/in.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "cli/process_node/pod_status.h"
#include "cli/process_node/pod_volumes.h"
#include "contract/contract.h"
#include "operator/api/json_input.h"
#include "operator/api/parse.h"
#include "operator/reconcile/observed.h"
#include "runtime/launch/available_cpus.h"

namespace coxswain {

namespace fs = std::filesystem;

namespace {

constexpr char kNodeName[] = "this-machine";
constexpr int kMostRanks = 10000;
constexpr int kStartErrorExitCode = 128;  // what a container runtime reports for a container it can't start

// A port that was free a moment ago. Another program may take it before ours does; the agent then ends with
// kPortInUse and the restart gets another one.
int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  int port = 0;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    port = ntohs(address.sin_port);
  }
  close(fd);
  return port;
}

std::string uid_of(const Json& pod) {
  return pod["metadata"].value("uid", "");
}
std::string name_of(const Json& pod) {
  return pod["metadata"].value("name", "");
}
std::string namespace_of(const Json& pod) {
  return pod["metadata"].value("namespace", "");
}

// Init containers that run for ever (restartPolicy Always) are sidecars, which aren't run here.
std::vector<Json> containers_to_run(const Json& pod) {
  std::vector<Json> result;
  for (const Json& container : pod["spec"].value("initContainers", Json::array())) {
    if (container.value("restartPolicy", "") != "Always") result.push_back(container);
  }
  for (const Json& container : pod["spec"].value("containers", Json::array())) {
    if (container.value("name", "") == contract::kTrainerContainer) result.push_back(container);
  }
  return result;
}

Result<fs::path> find_program(const std::string& name, const std::vector<fs::path>& folders,
                              const std::string& path) {
  if (name.find('/') != std::string::npos) {
    if (access(name.c_str(), X_OK) == 0 && fs::is_regular_file(name)) return fs::absolute(name);
    return bad_input("the program " + name + " is not an executable file of this machine");
  }
  std::vector<fs::path> searched = folders;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    if (end > begin) searched.emplace_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  for (const fs::path& folder : searched) {
    const fs::path candidate = folder / name;
    if (access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate))
      return fs::absolute(candidate);
  }
  if (name == contract::kRuntimeProgram) {
    return bad_input("the program " + name +
                     " is neither beside this one nor on PATH: set COXSWAIN_RUNTIME_DIR to its "
                     "folder");
  }
  return bad_input("the program " + name + " is not on PATH on this machine (its image is not used here)");
}

std::vector<std::string> command_of(const Json& container) {
  std::vector<std::string> result;
  for (const char* field : {"command", "args"}) {
    for (const Json& word : container.value(field, Json::array())) result.push_back(word.get<std::string>());
  }
  return result;
}

Result<void> check_command(const Json& container) {
  if (!container.value("command", Json::array()).empty()) return {};
  return bad_input("the container \"" + container.value("name", "") +
                   "\" has no command: images are not used here, so the program must be named in command");
}

std::string environment_value(const Environment& environment, const std::string& name) {
  const auto it = environment.find(name);
  return it == environment.end() ? "" : it->second;
}

// A count that the operator has set; 1 where it hasn't.
int count_of(const Environment& environment, const std::string& name) {
  return std::clamp(std::atoi(environment_value(environment, name).c_str()), 1, kMostRanks);
}

std::string termination_message(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (text.size() <= contract::kTerminationMessageMaxBytes) return text;
  return text.substr(text.size() - contract::kTerminationMessageMaxBytes);
}

}  // namespace

struct ProcessNode::Run {
  Json pod;
  ObservedPod seen;
  std::vector<Json> containers;
  std::vector<ContainerRun> history;  // one for each of `containers`
  size_t current = 0;                 // which of them runs; containers.size(): the pod has ended
  TimePoint started;
  fs::path folder;
  Supervised process;
  std::unique_ptr<LogPump> log;
  int agent_port = 0;
  std::optional<TimePoint> kill_at;  // set: it has been asked to end

  bool ended() const { return current >= containers.size(); }
};

ProcessNode::ProcessNode(MemoryApi& api, Clock clock, NodeOptions options, LineSink sink)
    : api_(api),
      clock_(std::move(clock)),
      options_(std::move(options)),
      sink_(std::move(sink)),
      pods_(api, {.resource = resources::kPods, .watch = in_process_watch_settings()}, clock_, {}, {}) {}

ProcessNode::~ProcessNode() {
  for (auto& [_, run] : runs_) {
    if (run->process.pid > 0) kill_all_in(run->process.pid);
  }
  for (auto& [_, run] : runs_) {
    if (run->process.pid > 0) waitpid(run->process.pid, nullptr, 0);
    if (run->log) run->log->finish();
  }
}

Result<void> ProcessNode::check(const Json& pod, const NodeOptions& options) {
  if (auto volumes = check_volumes(pod, options); !volumes) return volumes;
  const Environment base = base_environment();
  for (const Json& container : containers_to_run(pod)) {
    if (auto command = check_command(container); !command) return command;
    const std::string program = command_of(container).front();
    // A path may lead into a mount, and a $(NAME) anywhere: those are found out when it is started.
    if (program.find('/') != std::string::npos || program.find('$') != std::string::npos) continue;
    const auto found = find_program(program, options.program_folders, environment_value(base, "PATH"));
    if (!found) return tl::unexpected(found.error());
  }
  return {};
}

void ProcessNode::step() {
  pods_.poll();
  adopt_new_pods();
  for (auto& [_, run] : runs_) look_after(*run);
  std::erase_if(runs_, [&](const auto& entry) {
    const Run& run = *entry.second;
    const auto pod = pods_.store().find({namespace_of(run.pod), name_of(run.pod)});
    const bool gone = run.ended() && (pod == nullptr || uid_of(*pod) != entry.first);
    std::error_code ignored;
    if (gone) fs::remove_all(run.folder, ignored);
    return gone;
  });
}

void ProcessNode::adopt_new_pods() {
  for (const auto& object : pods_.store().all()) {
    const Json& pod = *object;
    if (runs_.contains(uid_of(pod))) continue;
    if (pod.contains("/metadata/deletionTimestamp"_json_pointer)) {
      confirm_deletion(pod);
    } else if (pod.value("/status/phase"_json_pointer, "") == "Pending") {
      start(pod);
    }
  }
}

void ProcessNode::start(const Json& pod) {
  auto bound = api_.bind_pod(namespace_of(pod), name_of(pod), kNodeName);
  if (!bound) return;
  pods_.store().remember(*bound);
  auto run = std::make_unique<Run>();
  run->pod = *bound;
  run->seen = observe_pod(*bound);
  run->containers = containers_to_run(*bound);
  run->started = clock_();
  run->folder = options_.state_folder / "pods" / (name_of(pod) + "." + std::to_string(run->seen.attempt));
  const size_t init_containers = run->containers.empty() ? 0 : run->containers.size() - 1;
  for (size_t i = 0; i < run->containers.size(); ++i) {
    run->history.push_back({run->containers[i].value("name", ""),
                            run->containers[i].value("image", ""),
                            i < init_containers,
                            {},
                            {},
                            0,
                            "",
                            ""});
  }
  std::error_code ignored;
  fs::remove_all(run->folder, ignored);
  Run& started = *run;
  runs_[uid_of(pod)] = std::move(run);
  if (!started.containers.empty()) start_container(started);
}

void ProcessNode::start_container(Run& run) {
  auto process = launch(run, run.containers[run.current]);
  if (!process) {
    sink_(run.seen.name, static_cast<int>(run.seen.node_rank), process.error().message);
    end_container(run, kStartErrorExitCode, "StartError", process.error().message);
    return;
  }
  run.process = *process;
  run.history[run.current].started = clock_();
  const fs::path logs = options_.state_folder / "logs";
  std::error_code ignored;
  fs::create_directories(logs, ignored);
  run.log = std::make_unique<LogPump>(
      run.process.output, logs / fmt::format("{}.attempt-{}.log", run.seen.name, run.seen.attempt),
      run.seen.name, static_cast<int>(run.seen.node_rank), sink_);
  write_status(run);
}

Environment ProcessNode::replaced_values(const Run& run) {
  const Json owner = run.pod.value("/metadata/ownerReferences/0"_json_pointer, Json::object());
  const auto key = std::pair{owner.value("uid", ""), static_cast<int>(run.seen.attempt)};
  const auto [port, fresh] = master_ports_.try_emplace(key, 0);
  if (fresh) port->second = free_port();
  const std::string master_port = std::to_string(port->second);
  return {{contract::kEnvMasterAddr, "127.0.0.1"},
          {contract::kEnvPetMasterAddr, "127.0.0.1"},
          {contract::kEnvMasterPort, master_port},
          {contract::kEnvPetMasterPort, master_port}};
}

Json ProcessNode::config_map(const std::string& ns, const std::string& name) {
  auto map = api_.get(resources::kConfigMaps, ns, name);
  return map ? *map : Json();
}

Result<Supervised> ProcessNode::launch(Run& run, const Json& container) {
  if (auto command = check_command(container); !command) return tl::unexpected(command.error());
  const auto lookup = [&](const std::string& name) { return config_map(namespace_of(run.pod), name); };
  const auto mounts = mount_volumes(run.pod, container, options_, run.folder, lookup);
  if (!mounts) return tl::unexpected(mounts.error());
  auto environment =
      container_environment(run.pod, container, base_environment(), replaced_values(run), *mounts, lookup);
  if (!environment) return tl::unexpected(environment.error());
  Environment& env = *environment;

  std::vector<std::string> argv;
  for (const std::string& word : command_of(container)) argv.push_back(mounts->rewrite(expand(word, env)));
  const auto program = find_program(argv.front(), options_.program_folders, environment_value(env, "PATH"));
  if (!program) return tl::unexpected(program.error());

  fs::path working_directory = run.folder / "work";
  const std::string asked = mounts->rewrite(container.value("workingDir", ""));
  if (!asked.empty() && fs::is_directory(asked)) working_directory = asked;
  std::error_code error;
  fs::create_directories(working_directory, error);
  if (error) {
    return fail(contract::ExitCode::kStorage,
                "cannot make the folder " + working_directory.string() + ": " + error.message());
  }

  run.agent_port = free_port();
  env["HOSTNAME"] = run.seen.name;
  env[contract::kEnvAgentPort] = std::to_string(run.agent_port);
  env[contract::kEnvTerminationLog] = (run.folder / "termination-log").string();
  // All processes of the job share this machine, of which each would otherwise take every core. The agent
  // hands the value on to its workers.
  const int processes = count_of(env, contract::kEnvNodes) * count_of(env, contract::kEnvProcessesPerNode);
  env.try_emplace("OMP_NUM_THREADS", std::to_string(threads_per_worker(available_cpus(), processes)));

  ProgramSpec spec{*program, argv, {}, working_directory, "pod " + run.seen.name};
  for (const auto& [name, value] : env) spec.environment.push_back(name + "=" + value);
  return start_supervised(spec);
}

void ProcessNode::look_after(Run& run) {
  if (run.log) run.log->pump();
  if (run.process.pid > 0) reap(run);
  const auto pod = pods_.store().find({namespace_of(run.pod), name_of(run.pod)});
  const bool ours = pod != nullptr && uid_of(*pod) == uid_of(run.pod);
  const bool deleting = ours && pod->contains("/metadata/deletionTimestamp"_json_pointer);
  if (run.ended()) {
    if (deleting) confirm_deletion(*pod);
    return;
  }
  if (run.process.pid <= 0) return;
  if (!ours) {  // deleted by force
    kill_all_in(run.process.pid);
  } else if (deleting && !run.kill_at) {
    run.kill_at =
        clock_() + std::chrono::seconds(pod->value("/metadata/deletionGracePeriodSeconds"_json_pointer, 0));
    ask_to_end(run.process.pid);
  } else if (run.kill_at && clock_() >= *run.kill_at) {
    kill_all_in(run.process.pid);
  }
}

void ProcessNode::reap(Run& run) {
  int status = 0;
  if (waitpid(run.process.pid, &status, WNOHANG) != run.process.pid) return;
  // A supervisor that was itself killed has not cleaned up its process group.
  if (WIFSIGNALED(status)) killpg(run.process.pid, SIGKILL);
  run.process.pid = -1;
  run.log->finish();
  const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  std::string message = termination_message(run.folder / "termination-log");
  const bool from_log =
      run.containers[run.current].value("terminationMessagePolicy", "") == "FallbackToLogsOnError";
  if (message.empty() && code != 0 && from_log) message = run.log->tail();
  end_container(run, code, code == 0 ? "Completed" : "Error", message);
}

void ProcessNode::end_container(Run& run, int exit_code, const std::string& reason,
                                const std::string& message) {
  ContainerRun& ended = run.history[run.current];
  ended.finished = clock_();
  ended.exit_code = exit_code;
  ended.reason = reason;
  ended.message = message;
  const bool goes_on = exit_code == 0 && run.current + 1 < run.containers.size() && !run.kill_at;
  run.current = goes_on ? run.current + 1 : run.containers.size();
  if (goes_on) {
    start_container(run);
  } else {
    write_status(run);
  }
}

void ProcessNode::write_status(Run& run) {
  auto current = api_.get(resources::kPods, namespace_of(run.pod), name_of(run.pod));
  if (!current || uid_of(*current) != uid_of(run.pod)) return;  // deleted by force meanwhile
  Json next = *current;
  next["status"] = pod_status(run.history, run.started);
  auto written = api_.update_status(resources::kPods, namespace_of(run.pod), next, {});
  if (written) {
    pods_.store().remember(*written);
  } else {
    spdlog::warn("status of pod {} could not be written: {}", run.seen.name, written.error().message);
  }
}

void ProcessNode::confirm_deletion(const Json& pod) {
  api_.remove(resources::kPods, namespace_of(pod), name_of(pod), {uid_of(pod), std::nullopt, 0, false});
}

bool ProcessNode::busy() const {
  return std::ranges::any_of(runs_, [](const auto& entry) { return entry.second->process.pid > 0; });
}

std::vector<int> ProcessNode::output_fds() const {
  std::vector<int> result;
  for (const auto& [_, run] : runs_) {
    if (run->log && run->log->fd() >= 0) result.push_back(run->log->fd());
  }
  return result;
}

void ProcessNode::kill_all() {
  for (auto& [_, run] : runs_) {
    if (run->process.pid > 0) kill_all_in(run->process.pid);
  }
}

std::optional<int> ProcessNode::agent_port(const std::string& pod_uid) const {
  const auto run = runs_.find(pod_uid);
  if (run == runs_.end() || run->second->process.pid <= 0) return std::nullopt;
  return run->second->agent_port;
}

std::optional<Json> LocalProgressReader::read(const Json& pod) {
  const auto port = node_.agent_port(uid_of(pod));
  if (!port) return std::nullopt;
  httplib::Client client("127.0.0.1", *port);
  client.set_connection_timeout(0, 300000);
  client.set_read_timeout(1, 0);
  const auto answer = client.Get("/progress");
  if (!answer || answer->status != 200) return std::nullopt;
  Json parsed = parse_json(answer->body);
  if (parsed.is_discarded()) return std::nullopt;
  return parsed;
}

}  // namespace coxswain
