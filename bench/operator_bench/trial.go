package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// An operator has come to rest when it has sent nothing for so long.
const quiet = 2 * time.Second

type contestant struct {
	user      string
	program   string
	arguments []string
}

type bench struct {
	plane   *controlPlane
	client  *kubernetes.Clientset
	dynamic dynamic.Interface
	phases  *jobPhases
}

// measures of one trial, by metric; a metric with several values has one for each job.
type measures map[string][]float64

// trial runs one case with one operator, started for it and stopped after it, in an empty namespace.
func (b *bench) trial(ctx context.Context, w workload, who contestant) (measures, world, error) {
	offset, err := auditSize(b.plane.auditLog)
	if err != nil {
		return nil, nil, err
	}
	if err := createJob(ctx, b.dynamic, probeJob, probePods); err != nil {
		return nil, nil, err
	}
	p, err := startProcess(b.plane.folder, fmt.Sprintf("%s-%s", who.user, w.name), who.program, who.arguments...)
	if err != nil {
		return nil, nil, err
	}
	defer p.stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-p.ended:
			cancel(p.failure())
		case <-ctx.Done():
		}
	}()
	result, seen, err := b.measure(ctx, w, who.user, p, offset)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return result, seen, err
}

func (b *bench) measure(ctx context.Context, w workload, user string, p *process, offset int64) (measures, world, error) {
	result := measures{}
	if err := b.phases.wait(ctx, []string{probeJob}); err != nil {
		return nil, nil, err
	}
	if err := b.waitUntilQuiet(ctx, user, offset); err != nil {
		return nil, nil, err
	}
	if err := result.addMemory(p, "rss_idle_mib", "VmRSS"); err != nil {
		return nil, nil, err
	}
	before, err := p.cpuSeconds()
	if err != nil {
		return nil, nil, err
	}
	begin := time.Now()
	if err := w.run(ctx, b.dynamic, b.phases); err != nil {
		return nil, nil, err
	}
	if err := b.waitUntilQuiet(ctx, user, offset); err != nil {
		return nil, nil, err
	}
	end := time.Now()
	after, err := p.cpuSeconds()
	if err != nil {
		return nil, nil, err
	}
	result["cpu_s"] = []float64{after - before}
	if err := result.addMemory(p, "rss_mib", "VmRSS"); err != nil {
		return nil, nil, err
	}
	if err := result.addMemory(p, "rss_peak_mib", "VmHWM"); err != nil {
		return nil, nil, err
	}
	all, err := requestsSince(b.plane.auditLog, offset)
	if err != nil {
		return nil, nil, err
	}
	if err := result.addRequests(all, w, user, begin, end); err != nil {
		return nil, nil, err
	}
	first, is := firstWrite(all, user)
	if !is {
		return nil, nil, fmt.Errorf("the audit log has no write of %s", user)
	}
	result["start_to_first_reconcile_s"] = []float64{first.Sub(p.started).Seconds()}
	seen, err := b.look(ctx, w)
	return result, seen, err
}

func (m measures) addMemory(p *process, metric, field string) error {
	mib, err := p.memory(field)
	m[metric] = []float64{mib}
	return err
}

func (m measures) addRequests(all []request, w workload, user string, begin, end time.Time) error {
	times, whole := spansOf(all, user, w.jobNames(), w.pods)
	m["create_to_all_s"], m["create_to_running_s"] = times.toAll, times.toRunning
	for _, seconds := range append(times.toAll, times.toRunning...) {
		if seconds <= 0 || seconds > caseLimit.Seconds() {
			return fmt.Errorf("%s, %s: the audit log has not all of a job's requests", w.name, user)
		}
	}
	m["jobs_per_s"] = []float64{float64(w.jobs) / whole.Seconds()}
	total := 0.0
	for verb, count := range countByVerb(all, user, begin, end) {
		perJob := float64(count) / float64(w.jobs)
		m["requests_per_job_"+verb] = []float64{perJob}
		total += perJob
	}
	m["requests_per_job"] = []float64{total}
	return nil
}

func (b *bench) waitUntilQuiet(ctx context.Context, user string, offset int64) error {
	return poll(ctx, time.Minute, user+" to come to rest", func() (bool, error) {
		all, err := requestsSince(b.plane.auditLog, offset)
		if err != nil {
			return false, err
		}
		last := time.Time{}
		for _, one := range all {
			if one.User.Username == user {
				last = later(last, one.StageTime)
			}
		}
		if left := quiet - time.Since(last); left > 0 {
			time.Sleep(left)
			return false, nil
		}
		return true, nil
	})
}

func watchPhases(ctx context.Context, client dynamic.Interface) (*jobPhases, error) {
	phases := &jobPhases{phase: map[string]string{}, changed: make(chan struct{})}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, trainingJobs, benchNamespace, 0, cache.Indexers{}, nil).Informer()
	take := func(object any) {
		job := object.(*unstructured.Unstructured)
		phase, _, _ := unstructured.NestedString(job.Object, "status", "phase")
		phases.set(job.GetName(), phase)
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: take,
		UpdateFunc: func(_, object any) { take(object) },
		DeleteFunc: func(object any) {
			if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
				phases.set(key.Name, "")
			}
		}})
	go informer.RunWithContext(ctx)
	return phases, err
}

// clean empties the namespace; there is no garbage collector.
func (b *bench) clean(ctx context.Context) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	all := metav1.ListOptions{}
	core := b.client.CoreV1()
	services, err := core.Services(benchNamespace).List(ctx, all)
	if err != nil {
		return err
	}
	for _, service := range services.Items {
		if err := core.Services(benchNamespace).Delete(ctx, service.Name, now); err != nil {
			return err
		}
	}
	for _, remove := range []func() error{
		func() error {
			return b.dynamic.Resource(trainingJobs).Namespace(benchNamespace).DeleteCollection(ctx, now, all)
		},
		func() error { return core.Pods(benchNamespace).DeleteCollection(ctx, now, all) },
		func() error { return core.ConfigMaps(benchNamespace).DeleteCollection(ctx, now, all) },
		func() error { return core.Events(benchNamespace).DeleteCollection(ctx, now, all) },
	} {
		if err := remove(); err != nil {
			return err
		}
	}
	return poll(ctx, time.Minute, "the namespace to be empty", func() (bool, error) {
		pods, err := core.Pods(benchNamespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return false, err
		}
		jobs, err := b.dynamic.Resource(trainingJobs).Namespace(benchNamespace).List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil && len(pods.Items) == 0 && len(jobs.Items) == 0, err
	})
}
