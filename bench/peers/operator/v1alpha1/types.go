// Package v1alpha1 holds the TrainingJob as crds/trainingjob.yaml defines it: the part of it that a job which
// starts, runs and ends by itself needs.
// +kubebuilder:object:generate=true
// +groupName=training.coxswain.dev
package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	GroupVersion  = schema.GroupVersion{Group: "training.coxswain.dev", Version: "v1alpha1"}
	SchemeBuilder = runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(GroupVersion, &TrainingJob{}, &TrainingJobList{})
		metav1.AddToGroupVersion(scheme, GroupVersion)
		return nil
	})
	AddToScheme = SchemeBuilder.AddToScheme
)

const (
	LabelJobName  = "training.coxswain.dev/job-name"
	LabelNodeRank = "training.coxswain.dev/node-rank"
	LabelAttempt  = "training.coxswain.dev/attempt"

	AnnotationSpec = "training.coxswain.dev/spec-fingerprint"

	ConditionRunning     = "Running"
	ConditionComplete    = "Complete"
	ConditionFailed      = "Failed"
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
)

// +kubebuilder:object:root=true
type TrainingJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              TrainingJobSpec   `json:"spec"`
	Status            TrainingJobStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true
type TrainingJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TrainingJob `json:"items"`
}

type TrainingJobSpec struct {
	// The trainer's own configuration, verbatim.
	Config           *runtime.RawExtension        `json:"config,omitempty"`
	Template         corev1.PodTemplateSpec       `json:"template,omitempty"`
	Nodes            int64                        `json:"nodes,omitempty"`
	ProcessesPerNode *int64                       `json:"processesPerNode,omitempty"`
	Image            string                       `json:"image,omitempty"`
	Resources        *corev1.ResourceRequirements `json:"resources,omitempty"`
	Env              []corev1.EnvVar              `json:"env,omitempty"`
	EnvFrom          []corev1.EnvFromSource       `json:"envFrom,omitempty"`
	Volumes          []corev1.Volume              `json:"volumes,omitempty"`
	VolumeMounts     []corev1.VolumeMount         `json:"volumeMounts,omitempty"`
	Output           Output                       `json:"output,omitempty"`
	Recovery         Recovery                     `json:"recovery,omitempty"`
	Suspend          bool                         `json:"suspend,omitempty"`
	RunPolicy        RunPolicy                    `json:"runPolicy,omitempty"`
}

type Output struct {
	ClaimName string `json:"claimName,omitempty"`
	SubPath   string `json:"subPath,omitempty"`
}

type Recovery struct {
	IntervalSeconds int64 `json:"intervalSeconds,omitempty"`
}

type RunPolicy struct {
	BackoffLimit                  int64 `json:"backoffLimit,omitempty"`
	TerminationGracePeriodSeconds int64 `json:"terminationGracePeriodSeconds,omitempty"`
}

type TrainingJobStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions     []metav1.Condition `json:"conditions,omitempty"`
	Phase          string             `json:"phase,omitempty"`
	Attempt        int64              `json:"attempt"`
	RuntimeImage   string             `json:"runtimeImage,omitempty"`
	Nodes          NodesStatus        `json:"nodes"`
	Restarts       RestartsStatus     `json:"restarts"`
	StartTime      *metav1.Time       `json:"startTime,omitempty"`
	StartupTime    *metav1.Time       `json:"startupTime,omitempty"`
	CompletionTime *metav1.Time       `json:"completionTime,omitempty"`
}

type NodesStatus struct {
	Desired   int64 `json:"desired"`
	Active    int64 `json:"active"`
	Ready     int64 `json:"ready"`
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed"`
}

type RestartsStatus struct {
	Counted     int64 `json:"counted"`
	Disruptions int64 `json:"disruptions"`
	Hangs       int64 `json:"hangs"`
}
