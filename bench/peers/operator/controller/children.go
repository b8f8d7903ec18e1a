package controller

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"coxswain.dev/bench/peers/operator/v1alpha1"
)

const (
	trainerContainer = "trainer"
	masterPort       = 29500
	agentPort        = 9470
	configDir        = "/etc/coxswain"
	configKey        = "config.yaml"
	outputMount      = "/output"
	runtimeUser      = int64(65532)
)

func configMapName(job *v1alpha1.TrainingJob) string {
	return fmt.Sprintf("%s-config-%d", job.Name, job.Status.Attempt)
}

func podName(job *v1alpha1.TrainingJob, rank int) string { return fmt.Sprintf("%s-%d", job.Name, rank) }

func childMeta(job *v1alpha1.TrainingJob, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:      name,
		Namespace: job.Namespace,
		Labels: map[string]string{
			"app.kubernetes.io/name":       "trainingjob",
			"app.kubernetes.io/instance":   job.Name,
			"app.kubernetes.io/component":  "training",
			"app.kubernetes.io/managed-by": "coxswain",
			v1alpha1.LabelJobName:          job.Name,
		},
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(job, v1alpha1.GroupVersion.WithKind("TrainingJob")),
		},
	}
}

func buildService(job *v1alpha1.TrainingJob) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: childMeta(job, job.Name),
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			PublishNotReadyAddresses: true,
			Selector:                 map[string]string{v1alpha1.LabelJobName: job.Name},
			Ports: []corev1.ServicePort{
				{Name: "master", Port: masterPort, Protocol: corev1.ProtocolTCP},
				{Name: "agent", Port: agentPort, Protocol: corev1.ProtocolTCP},
			},
		},
	}
}

func buildConfigMap(job *v1alpha1.TrainingJob) (*corev1.ConfigMap, error) {
	text, err := yaml.JSONToYAML(job.Spec.Config.Raw)
	if err != nil {
		return nil, err
	}
	meta := childMeta(job, configMapName(job))
	meta.Labels[v1alpha1.LabelAttempt] = strconv.FormatInt(job.Status.Attempt, 10)
	return &corev1.ConfigMap{
		ObjectMeta: meta,
		Immutable:  ptr.To(true),
		Data:       map[string]string{configKey: string(text)},
	}, nil
}

// podBuilder holds what the pods of an attempt have in common.
type podBuilder struct {
	job         *v1alpha1.TrainingJob
	fingerprint string
}

func newPodBuilder(job *v1alpha1.TrainingJob) (*podBuilder, error) {
	hash := fnv.New64a()
	spec := job.Spec
	spec.Suspend = false
	if err := json.NewEncoder(hash).Encode(spec); err != nil {
		return nil, err
	}
	return &podBuilder{job: job, fingerprint: fmt.Sprintf("1-%016x", hash.Sum64())}, nil
}

func (b *podBuilder) build(rank int) *corev1.Pod {
	template := b.job.Spec.Template.DeepCopy()
	meta := childMeta(b.job, podName(b.job, rank))
	meta.Labels[v1alpha1.LabelNodeRank] = strconv.Itoa(rank)
	meta.Labels[v1alpha1.LabelAttempt] = strconv.FormatInt(b.job.Status.Attempt, 10)
	meta.Annotations = map[string]string{v1alpha1.AnnotationSpec: b.fingerprint}
	addMissing(meta.Labels, template.Labels)
	addMissing(meta.Annotations, template.Annotations)

	spec := &template.Spec
	spec.Volumes = append(spec.Volumes, b.job.Spec.Volumes...)
	b.setTrainer(spec, rank)
	spec.Hostname = meta.Name
	spec.Subdomain = b.job.Name
	spec.RestartPolicy = corev1.RestartPolicyNever
	spec.TerminationGracePeriodSeconds = ptr.To(b.job.Spec.RunPolicy.TerminationGracePeriodSeconds)
	if spec.EnableServiceLinks == nil {
		spec.EnableServiceLinks = ptr.To(false)
	}
	if spec.AutomountServiceAccountToken == nil {
		spec.AutomountServiceAccountToken = ptr.To(false)
	}
	if b.job.Spec.Config != nil && spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{
			RunAsNonRoot:        ptr.To(true),
			RunAsUser:           ptr.To(runtimeUser),
			RunAsGroup:          ptr.To(runtimeUser),
			FSGroup:             ptr.To(runtimeUser),
			FSGroupChangePolicy: ptr.To(corev1.FSGroupChangeOnRootMismatch),
			SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
	}
	return &corev1.Pod{ObjectMeta: meta, Spec: *spec}
}

func addMissing(to, from map[string]string) {
	for key, value := range from {
		if _, there := to[key]; !there {
			to[key] = value
		}
	}
}

func (b *podBuilder) setTrainer(spec *corev1.PodSpec, rank int) {
	job := &b.job.Spec
	at := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == trainerContainer })
	if at < 0 {
		spec.Containers = append(spec.Containers, corev1.Container{Name: trainerContainer})
		at = len(spec.Containers) - 1
	}
	trainer := &spec.Containers[at]
	trainer.Env = slices.Concat(b.contractEnv(rank), trainer.Env, job.Env)
	trainer.EnvFrom = append(trainer.EnvFrom, job.EnvFrom...)
	if job.Resources != nil {
		trainer.Resources = *job.Resources
	}
	trainer.VolumeMounts = append(trainer.VolumeMounts, job.VolumeMounts...)
	b.addVolumes(spec, trainer)
	if job.Config == nil {
		return
	}
	trainer.Image = job.Image
	if trainer.Image == "" {
		trainer.Image = b.job.Status.RuntimeImage
	}
	trainer.Command = []string{"coxswain-runtime", "launch"}
	trainer.Args = nil
	if trainer.SecurityContext == nil {
		trainer.SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false),
			ReadOnlyRootFilesystem:   ptr.To(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	}
	trainer.Ports = append(trainer.Ports,
		corev1.ContainerPort{Name: "agent", ContainerPort: agentPort, Protocol: corev1.ProtocolTCP})
	if trainer.TerminationMessagePolicy == "" {
		trainer.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	}
}

func (b *podBuilder) addVolumes(spec *corev1.PodSpec, trainer *corev1.Container) {
	add := func(name, path string, source corev1.VolumeSource) *corev1.VolumeMount {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		trainer.VolumeMounts = append(trainer.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path})
		return &trainer.VolumeMounts[len(trainer.VolumeMounts)-1]
	}
	mounted := func(path string) bool {
		return slices.ContainsFunc(trainer.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path })
	}
	hasConfig := b.job.Spec.Config != nil
	if hasConfig {
		reference := corev1.LocalObjectReference{Name: configMapName(b.job)}
		source := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: reference}}
		add("coxswain-config", configDir, source).ReadOnly = true
	}
	output := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	if claim := b.job.Spec.Output.ClaimName; claim != "" {
		output = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}
	}
	add("coxswain-output", outputMount, output).SubPath = b.job.Spec.Output.SubPath
	if !mounted("/dev/shm") {
		memory := corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: shmSize(trainer)}
		add("coxswain-shm", "/dev/shm", corev1.VolumeSource{EmptyDir: &memory})
	}
	if hasConfig && !mounted("/tmp") {
		add("coxswain-tmp", "/tmp", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	}
}

// Half of the memory that the trainer may use.
func shmSize(trainer *corev1.Container) *resource.Quantity {
	const mebi = 1 << 20
	bytes := int64(2 << 30)
	if memory, limited := trainer.Resources.Limits[corev1.ResourceMemory]; limited && memory.Value() > 0 {
		bytes = memory.Value() / 2
	}
	return ptr.To(resource.MustParse(fmt.Sprintf("%dMi", max(1, bytes/mebi))))
}

func (b *podBuilder) contractEnv(rank int) []corev1.EnvVar {
	job := b.job
	master := fmt.Sprintf("%s.%s.%s.svc", podName(job, 0), job.Name, job.Namespace)
	port, rankText := strconv.Itoa(masterPort), strconv.Itoa(rank)
	nodes := strconv.FormatInt(job.Spec.Nodes, 10)
	processes := strconv.FormatInt(processesPerNode(&job.Spec), 10)
	output := outputMount + "/" + job.Name
	env := []corev1.EnvVar{
		{Name: "MASTER_ADDR", Value: master},
		{Name: "MASTER_PORT", Value: port},
		{Name: "NNODES", Value: nodes},
		{Name: "NODE_RANK", Value: rankText},
		{Name: "NPROC_PER_NODE", Value: processes},
		{Name: "PET_NNODES", Value: nodes},
		{Name: "PET_NPROC_PER_NODE", Value: processes},
		{Name: "PET_NODE_RANK", Value: rankText},
		{Name: "PET_MASTER_ADDR", Value: master},
		{Name: "PET_MASTER_PORT", Value: port},
		{Name: "TRAINING_JOB_NAME", Value: job.Name},
		{Name: "TRAINING_JOB_UID", Value: string(job.UID)},
		{Name: "TRAINING_JOB_ATTEMPT", Value: strconv.FormatInt(job.Status.Attempt, 10)},
		{Name: "COXSWAIN_OUTPUT_DIR", Value: output},
		{Name: "COXSWAIN_RECOVERY_DIR", Value: output + "/.recovery/" + string(job.UID)},
		{Name: "COXSWAIN_RECOVERY_INTERVAL_SECONDS", Value: strconv.FormatInt(job.Spec.Recovery.IntervalSeconds, 10)},
		{Name: "PYTHONUNBUFFERED", Value: "1"},
	}
	if job.Spec.Config != nil {
		env = append(env, corev1.EnvVar{Name: "COXSWAIN_CONFIG", Value: configDir + "/" + configKey})
	}
	if processes == "1" {
		env = append(env,
			corev1.EnvVar{Name: "RANK", Value: rankText},
			corev1.EnvVar{Name: "LOCAL_RANK", Value: "0"},
			corev1.EnvVar{Name: "WORLD_SIZE", Value: nodes},
			corev1.EnvVar{Name: "LOCAL_WORLD_SIZE", Value: "1"})
	}
	return env
}

// One for each GPU where the job doesn't say.
func processesPerNode(spec *v1alpha1.TrainingJobSpec) int64 {
	if spec.ProcessesPerNode != nil {
		return *spec.ProcessesPerNode
	}
	gpus := int64(0)
	if spec.Resources != nil {
		for _, name := range []corev1.ResourceName{"nvidia.com/gpu", "amd.com/gpu"} {
			amount := spec.Resources.Limits[name]
			gpus += amount.Value()
		}
	}
	return max(1, gpus)
}
