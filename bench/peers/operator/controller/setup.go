package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"coxswain.dev/bench/peers/operator/v1alpha1"
)

const ownerIndex = "controllerUID"

// CacheOptions keeps memory small: only children of jobs, and of pods only what is read.
func CacheOptions() cache.Options {
	ofJobs := labels.NewSelector()
	hasJob, err := labels.NewRequirement(v1alpha1.LabelJobName, selection.Exists, nil)
	if err != nil {
		panic(err)
	}
	ofJobs = ofJobs.Add(*hasJob)
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:           {Label: ofJobs, Transform: trimPod},
			metadataOf("Service"):   {Label: ofJobs},
			metadataOf("ConfigMap"): {Label: ofJobs},
		},
	}
}

func metadataOf(kind string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return object
}

func trimPod(object any) (any, error) {
	if pod, is := object.(*corev1.Pod); is {
		pod.ManagedFields = nil
		pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
	}
	return object, nil
}

func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	err := manager.GetFieldIndexer().IndexField(context.Background(), &corev1.Pod{}, ownerIndex,
		func(object client.Object) []string {
			if owner := metav1.GetControllerOf(object); owner != nil {
				return []string{string(owner.UID)}
			}
			return nil
		})
	if err != nil {
		return err
	}
	ofOwner := handler.EnqueueRequestForOwner(manager.GetScheme(), manager.GetRESTMapper(),
		&v1alpha1.TrainingJob{}, handler.OnlyControllerOwner())
	batched := later(ofOwner, r.BatchPeriod)
	// What Owns() does, but for the delay.
	return ctrl.NewControllerManagedBy(manager).
		For(&v1alpha1.TrainingJob{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Pod{}, batched).
		WatchesMetadata(&corev1.Service{}, batched).
		WatchesMetadata(&corev1.ConfigMap{}, batched).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Complete(r)
}

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// delayed is a queue whose Add waits; adds of a request that waits already are one.
type delayed struct {
	queue
	period time.Duration
}

func (d delayed) Add(request ctrl.Request) { d.AddAfter(request, d.period) }

// later is inner, but enqueues what inner would after a period; 0: at once.
func later(inner handler.EventHandler, period time.Duration) handler.EventHandler {
	if period == 0 {
		return inner
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { inner.Create(ctx, e, delayed{q, period}) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { inner.Update(ctx, e, delayed{q, period}) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { inner.Delete(ctx, e, delayed{q, period}) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q queue) {
			inner.Generic(ctx, e, delayed{q, period})
		},
	}
}
