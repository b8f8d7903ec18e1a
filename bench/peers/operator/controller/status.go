package controller

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coxswain.dev/bench/peers/operator/v1alpha1"
)

// gang is the pods of the job's attempt by rank; nil where there is none.
type gang []*corev1.Pod

func sortPods(job *v1alpha1.TrainingJob, pods []corev1.Pod) gang {
	byRank := make(gang, job.Spec.Nodes)
	attempt := strconv.FormatInt(job.Status.Attempt, 10)
	for i := range pods {
		pod := &pods[i]
		rank, err := strconv.Atoi(pod.Labels[v1alpha1.LabelNodeRank])
		if err == nil && pod.Labels[v1alpha1.LabelAttempt] == attempt && rank >= 0 && rank < len(byRank) {
			byRank[rank] = pod
		}
	}
	return byRank
}

func (g gang) missing() []int {
	var ranks []int
	for rank, pod := range g {
		if pod == nil {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

func (g gang) all(is func(*corev1.Pod) bool) bool {
	for _, pod := range g {
		if pod == nil || !is(pod) {
			return false
		}
	}
	return true
}

func (g gang) firstFailed() *corev1.Pod {
	for _, pod := range g {
		if pod != nil && pod.Status.Phase == corev1.PodFailed {
			return pod
		}
	}
	return nil
}

func succeeded(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded }
func started(pod *corev1.Pod) bool   { return pod.Status.Phase != corev1.PodPending }

func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (g gang) count() v1alpha1.NodesStatus {
	nodes := v1alpha1.NodesStatus{Desired: int64(len(g))}
	for _, pod := range g {
		switch {
		case pod == nil:
		case succeeded(pod):
			nodes.Succeeded++
		case pod.Status.Phase == corev1.PodFailed:
			nodes.Failed++
		default:
			nodes.Active++
			if pod.Status.Phase == corev1.PodRunning && ready(pod) {
				nodes.Ready++
			}
		}
	}
	return nodes
}

type verdict struct {
	phase, reason, message      string
	running                     bool
	ready, reconciling, stalled bool
	terminal                    string // Complete or Failed; empty: neither
}

func starting(message string) verdict {
	return verdict{phase: "Starting", reason: "Starting", message: message, reconciling: true}
}

// judge says what the status is to say of a gang.
func judge(g gang) verdict {
	if failed := g.firstFailed(); failed != nil {
		return verdict{phase: "Failed", reason: "PodFailed", message: "Pod " + failed.Name + " failed.",
			stalled: true, terminal: v1alpha1.ConditionFailed}
	}
	switch {
	case g.all(succeeded):
		return verdict{phase: "Complete", reason: "AllPodsSucceeded",
			message: fmt.Sprintf("All %d pods ended with exit code 0.", len(g)),
			ready:   true, terminal: v1alpha1.ConditionComplete}
	case g.all(started):
		return verdict{phase: "Running", reason: "AllPodsRunning", message: "All pods of the attempt run.",
			running: true, ready: true}
	case len(g.missing()) > 0:
		return starting("The pods are being created.")
	default:
		return starting("Waiting for all pods to run.")
	}
}

func setConditions(job *v1alpha1.TrainingJob, v verdict) {
	set := func(kind string, value bool) {
		status := metav1.ConditionFalse
		if value {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&job.Status.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: v.reason, Message: v.message, ObservedGeneration: job.Generation})
	}
	job.Status.Phase = v.phase
	set(v1alpha1.ConditionRunning, v.running)
	if v.terminal != "" {
		set(v.terminal, true)
	}
	set(v1alpha1.ConditionReady, v.ready)
	set(v1alpha1.ConditionReconciling, v.reconciling)
	set(v1alpha1.ConditionStalled, v.stalled)
}

func finished(job *v1alpha1.TrainingJob) bool {
	return meta.IsStatusConditionTrue(job.Status.Conditions, v1alpha1.ConditionComplete) ||
		meta.IsStatusConditionTrue(job.Status.Conditions, v1alpha1.ConditionFailed)
}
