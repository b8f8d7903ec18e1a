// Package controller is a TrainingJob operator as controller-runtime means them to be written: the peer of
// coxswain-operator in scripts/bench.sh operator. It makes the same children, with the same status and events,
// for jobs that start, run and end by themselves; restarts, suspension, node loss and the rest are left out,
// which costs it nothing here.
package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"coxswain.dev/bench/peers/operator/v1alpha1"
)

type Reconciler struct {
	client.Client
	Recorder     events.EventRecorder
	RuntimeImage string
	// From a change of a pod to the pass; what happens to other pods of the job meanwhile costs no pass of its
	// own (as Kubernetes' Job controller does it). 0: a pass at once.
	BatchPeriod time.Duration
	Workers     int
	expected    expectations
}

type news struct{ kind, reason, message string }

func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cached := &v1alpha1.TrainingJob{}
	if err := r.Get(ctx, request.NamespacedName, cached); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if cached.DeletionTimestamp != nil || finished(cached) || cached.Spec.Suspend {
		return ctrl.Result{}, nil
	}
	pods := &corev1.PodList{}
	if err := r.List(ctx, pods, client.InNamespace(request.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingFields{ownerIndex: string(cached.UID)}); err != nil {
		return ctrl.Result{}, err
	}
	job := cached.DeepCopy()
	podsOfJob := sortPods(job, pods.Items)
	toTell := r.setStatus(job, podsOfJob)
	if !equality.Semantic.DeepEqual(job.Status, cached.Status) {
		if err := r.Status().Update(ctx, job); err != nil {
			if apierrors.IsConflict(err) {
				return ctrl.Result{RequeueAfter: 100 * time.Millisecond}, nil
			}
			return ctrl.Result{}, err
		}
	}
	if !finished(job) {
		if err := r.createMissing(ctx, job, podsOfJob); err != nil {
			return ctrl.Result{}, err
		}
	}
	for _, e := range toTell {
		r.Recorder.Eventf(job, nil, e.kind, e.reason, e.reason, "%s", e.message)
	}
	return ctrl.Result{}, nil
}

func (r *Reconciler) setStatus(job *v1alpha1.TrainingJob, pods gang) []news {
	var toTell []news
	status := &job.Status
	if status.StartTime == nil {
		now := metav1.Now().Rfc3339Copy()
		status.StartTime, status.StartupTime = &now, &now
		if job.Spec.Config != nil && job.Spec.Image == "" {
			status.RuntimeImage = r.RuntimeImage
		}
		toTell = append(toTell,
			news{corev1.EventTypeNormal, "Started", fmt.Sprintf("Starts as attempt %d.", status.Attempt)})
		if job.Spec.Output.ClaimName == "" {
			toTell = append(toTell, news{corev1.EventTypeWarning, "OutputNotKept", "spec.output is not set: what the job " +
				"writes to /output, checkpoints too, is lost with its pods."})
		}
	}
	phaseBefore := status.Phase
	status.ObservedGeneration = job.Generation
	status.Nodes = pods.count()
	v := judge(pods)
	setConditions(job, v)
	switch {
	case v.running && phaseBefore != v.phase:
		toTell = append(toTell, news{corev1.EventTypeNormal, "Running", fmt.Sprintf("All pods of attempt %d run.", status.Attempt)})
	case v.terminal == v1alpha1.ConditionComplete:
		toTell = append(toTell, news{corev1.EventTypeNormal, "Completed", v.message})
	case v.terminal == v1alpha1.ConditionFailed:
		toTell = append(toTell, news{corev1.EventTypeWarning, "Failed", v.reason + ": " + v.message})
	}
	if v.terminal != "" {
		now := metav1.Now().Rfc3339Copy()
		status.CompletionTime = &now
	}
	return toTell
}

func (r *Reconciler) createMissing(ctx context.Context, job *v1alpha1.TrainingJob, pods gang) error {
	if err := r.createUnlessThere(ctx, "Service", job.Name, job, func() (client.Object, error) {
		return buildService(job), nil
	}); err != nil {
		return err
	}
	if job.Spec.Config != nil {
		if err := r.createUnlessThere(ctx, "ConfigMap", configMapName(job), job, func() (client.Object, error) {
			return buildConfigMap(job)
		}); err != nil {
			return err
		}
	}
	missing := r.expected.unexpected(job.UID, pods)
	if len(missing) == 0 {
		return nil
	}
	builder, err := newPodBuilder(job)
	if err != nil {
		return err
	}
	return slowStart(len(missing), func(i int) error {
		err := client.IgnoreAlreadyExists(r.Create(ctx, builder.build(missing[i])))
		if err == nil {
			r.expected.created(job.UID, missing[i])
		}
		return err
	})
}

// Only the metadata of services and config maps is cached, and asked for.
func (r *Reconciler) createUnlessThere(ctx context.Context, kind, name string, job *v1alpha1.TrainingJob,
	build func() (client.Object, error)) error {
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	err := r.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: name}, there)
	if err == nil || !apierrors.IsNotFound(err) {
		return err
	}
	object, err := build()
	if err != nil {
		return err
	}
	return client.IgnoreAlreadyExists(r.Create(ctx, object))
}

// slowStart calls do for 0 to count-1, in batches of 1, 2, 4, … at a time, and stops after a batch with an
// error: Kubernetes' own controllers make pods so.
func slowStart(count int, do func(int) error) error {
	for begin, batch := 0, 1; begin < count; batch *= 2 {
		size := min(batch, count-begin)
		failures := make(chan error, size)
		var group sync.WaitGroup
		for i := begin; i < begin+size; i++ {
			group.Go(func() {
				if err := do(i); err != nil {
					failures <- err
				}
			})
		}
		group.Wait()
		if len(failures) > 0 {
			return <-failures
		}
		begin += size
	}
	return nil
}
