// What the operator, the runtime and the command line agree on. Changing a value here changes what running
// pods and written checkpoints mean: add, don't change.
#pragma once

namespace coxswain::contract {

// --- API ---------------------------------------------------------------------------------------------------
inline constexpr char kGroup[] = "training.coxswain.dev";
inline constexpr char kVersion[] = "v1alpha1";
inline constexpr char kApiVersion[] = "training.coxswain.dev/v1alpha1";
inline constexpr char kKind[] = "TrainingJob";
inline constexpr char kPlural[] = "trainingjobs";

// --- Labels on children ------------------------------------------------------------------------------------
inline constexpr char kLabelJobName[] = "training.coxswain.dev/job-name";
inline constexpr char kLabelNodeRank[] = "training.coxswain.dev/node-rank";
inline constexpr char kLabelAttempt[] = "training.coxswain.dev/attempt";

// --- Environment of a training container (reserved: a template that sets one of these is overridden)
// --------
inline constexpr char kEnvMasterAddr[] = "MASTER_ADDR";
inline constexpr char kEnvMasterPort[] = "MASTER_PORT";
inline constexpr char kEnvNodes[] = "NNODES";
inline constexpr char kEnvNodeRank[] = "NODE_RANK";
inline constexpr char kEnvProcessesPerNode[] = "NPROC_PER_NODE";
// Set by the operator where one process runs per pod, and by the agent for each worker.
inline constexpr char kEnvRank[] = "RANK";
inline constexpr char kEnvLocalRank[] = "LOCAL_RANK";
inline constexpr char kEnvWorldSize[] = "WORLD_SIZE";
inline constexpr char kEnvLocalWorldSize[] = "LOCAL_WORLD_SIZE";
// torchrun's names for the same, so that a torchrun container needs no arguments.
inline constexpr char kEnvPetNodes[] = "PET_NNODES";
inline constexpr char kEnvPetProcessesPerNode[] = "PET_NPROC_PER_NODE";
inline constexpr char kEnvPetNodeRank[] = "PET_NODE_RANK";
inline constexpr char kEnvPetMasterAddr[] = "PET_MASTER_ADDR";
inline constexpr char kEnvPetMasterPort[] = "PET_MASTER_PORT";
inline constexpr char kEnvJobName[] = "TRAINING_JOB_NAME";
inline constexpr char kEnvJobUid[] = "TRAINING_JOB_UID";
inline constexpr char kEnvJobAttempt[] = "TRAINING_JOB_ATTEMPT";
inline constexpr char kEnvConfig[] = "COXSWAIN_CONFIG";             // path of the AITraining YAML
inline constexpr char kEnvOutputDir[] = "COXSWAIN_OUTPUT_DIR";      // a relative project_name lies under it
inline constexpr char kEnvRecoveryDir[] = "COXSWAIN_RECOVERY_DIR";  // recovery checkpoints of this job's UID
inline constexpr char kEnvPythonUnbuffered[] = "PYTHONUNBUFFERED";

inline constexpr const char* kReservedEnv[] = {
    kEnvMasterAddr,       kEnvMasterPort,    kEnvNodes,       kEnvNodeRank,
    kEnvProcessesPerNode, kEnvRank,          kEnvLocalRank,   kEnvWorldSize,
    kEnvLocalWorldSize,   kEnvPetNodes,      kEnvPetNodeRank, kEnvPetProcessesPerNode,
    kEnvPetMasterAddr,    kEnvPetMasterPort, kEnvJobName,     kEnvJobUid,
    kEnvJobAttempt,       kEnvConfig,        kEnvOutputDir,   kEnvRecoveryDir,
    kEnvPythonUnbuffered};

// Read by the agent and set by whoever stands in for the kubelet; never by the operator.
inline constexpr char kEnvAgentPort[] = "COXSWAIN_AGENT_PORT";            // default: kAgentPort
inline constexpr char kEnvTerminationLog[] = "COXSWAIN_TERMINATION_LOG";  // default: kTerminationLog
// Seconds between recovery checkpoints (spec.recovery.intervalSeconds); 0: none but the one on SIGTERM.
inline constexpr char kEnvRecoveryInterval[] = "COXSWAIN_RECOVERY_INTERVAL_SECONDS";
// From agent to worker: the number of an open pipe to write progress lines to (see Progress below).
inline constexpr char kEnvProgressFd[] = "COXSWAIN_PROGRESS_FD";

// --- Paths in a pod ----------------------------------------------------------------------------------------
inline constexpr char kConfigDir[] = "/etc/coxswain";
inline constexpr char kConfigPath[] =
    "/etc/coxswain/config.yaml";  // key config.yaml of the attempt's ConfigMap
inline constexpr char kConfigKey[] = "config.yaml";
inline constexpr char kOutputMount[] = "/output";  // COXSWAIN_OUTPUT_DIR = /output/<job>
inline constexpr char kRecoveryFolder[] =
    ".recovery";  // COXSWAIN_RECOVERY_DIR = <output dir>/.recovery/<uid>
inline constexpr char kTerminationLog[] = "/dev/termination-log";
inline constexpr int kTerminationMessageMaxBytes = 4096;

// --- Names in a pod ----------------------------------------------------------------------------------------
inline constexpr char kTrainerContainer[] = "trainer";
inline constexpr char kRuntimeProgram[] = "coxswain-runtime";  // the runtime image's; `launch` is its PID 1

// --- Ports -------------------------------------------------------------------------------------------------
inline constexpr int kMasterPort = 29500;  // rank 0's TCPStore
inline constexpr int kAgentPort = 9470;    // every agent's /progress, /metrics, /healthz

// --- Exit codes of the runtime
// ------------------------------------------------------------------------------
enum class ExitCode : int {
  kDone = 0,
  kBadInput = 2,            // bad configuration or data: the same again would fail the same; never retried
  kInternal = 70,           // a fault of ours, or of a library
  kStorage = 74,            // could not read or write storage that was there before
  kStopped = 75,            // stopped on request, after saving
  kLostPeer = 76,           // another rank went away: collateral, never the cause
  kRendezvousTimeout = 77,  // the master could not be reached in time
  kPortInUse = 78,          // the master's or the agent's port is taken
};

// --- Progress
// ------------------------------------------------------------------------------------------------ A worker
// writes one JSON object a line to kEnvProgressFd (never more than PIPE_BUF bytes a line); the agent keeps
// the last of each worker and serves it. Kinds, by "event":
//   {"event":"phase","phase":"load"|"rendezvous"|"train"|"save"|"done"}
//   {"event":"step","step":N,"total_steps":N,"epoch":F,"loss":F,"grad_norm":F,"learning_rate":F,"tokens_per_second":F}
//   {"event":"checkpoint","step":N}
//   {"event":"error","exit_code":N,"message":"…"}
// GET /progress of the agent:
//   {"job":…,"attempt":N,"node_rank":N,"workers":[{"rank":N,"phase":…,"step":N,…,"updated_at":unix seconds}],
//    "last_checkpoint_step":N|null}
}  // namespace coxswain::contract
