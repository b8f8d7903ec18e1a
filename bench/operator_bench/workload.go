package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const (
	benchNamespace = "bench"
	probeJob       = "probe" // there when an operator starts, and measured apart
	probePods      = 2
	creators       = 8
	caseLimit      = 10 * time.Minute
)

var trainingJobs = schema.GroupVersionResource{Group: "training.coxswain.dev", Version: "v1alpha1", Resource: "trainingjobs"}

// workload is one case: so many jobs of so many pods, each when the one before runs, or all at once.
type workload struct {
	name     string
	jobs     int
	pods     int
	oneByOne bool
}

func workloads(small bool) []workload {
	if small {
		return []workload{{name: "sequential", jobs: 4, pods: 2, oneByOne: true},
			{name: "burst", jobs: 10, pods: 2}, {name: "wide", jobs: 1, pods: 20}}
	}
	return []workload{{name: "sequential", jobs: 30, pods: 8, oneByOne: true},
		{name: "burst", jobs: 200, pods: 8}, {name: "wide", jobs: 1, pods: 500}}
}

func (w workload) jobNames() []string {
	var names []string
	for i := range w.jobs {
		names = append(names, fmt.Sprintf("%s-%03d", w.name, i))
	}
	return names
}

func podOf(job string, rank int) string { return fmt.Sprintf("%s-%d", job, rank) }

func newJob(name string, pods int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "training.coxswain.dev/v1alpha1",
		"kind":       "TrainingJob",
		"metadata":   map[string]any{"name": name, "namespace": benchNamespace},
		"spec": map[string]any{
			"nodes": int64(pods),
			"config": map[string]any{
				"task": "llm-sft", "base_model": "/models/SmolLM2-135M-Instruct", "project_name": "adapter",
				"data": map[string]any{"path": "/data/jargon", "train_split": "train", "chat_template": "tokenizer",
					"column_mapping": map[string]any{"text_column": "messages"}},
				"log": "tensorboard",
				"params": map[string]any{"max_steps": int64(30), "batch_size": int64(2), "block_size": int64(192), "lr": 0.001,
					"scheduler": "linear", "peft": true, "lora_r": int64(16), "lora_alpha": int64(32),
					"target_modules": "all-linear", "distributed_backend": "ddp"},
			},
			"resources": map[string]any{"limits": map[string]any{"cpu": "1", "memory": "4Gi"}},
			"volumes": []any{map[string]any{"name": "models",
				"persistentVolumeClaim": map[string]any{"claimName": "models", "readOnly": true}}},
			"volumeMounts": []any{map[string]any{"name": "models", "mountPath": "/models", "readOnly": true}},
			"env":          []any{map[string]any{"name": "HF_HUB_OFFLINE", "value": "1"}},
			"output":       map[string]any{"claimName": "output"},
		},
	}}
}

func createJob(ctx context.Context, client dynamic.Interface, name string, pods int) error {
	_, err := client.Resource(trainingJobs).Namespace(benchNamespace).Create(ctx, newJob(name, pods), metav1.CreateOptions{})
	return err
}

// run creates the jobs and returns when all of them run.
func (w workload) run(ctx context.Context, client dynamic.Interface, phases *jobPhases) error {
	if w.oneByOne {
		for _, name := range w.jobNames() {
			if err := createJob(ctx, client, name, w.pods); err != nil {
				return err
			}
			if err := phases.wait(ctx, []string{name}); err != nil {
				return err
			}
		}
		return nil
	}
	if err := w.createAll(ctx, client); err != nil {
		return err
	}
	return phases.wait(ctx, w.jobNames())
}

func (w workload) createAll(ctx context.Context, client dynamic.Interface) error {
	names := make(chan string)
	failures := make(chan error, w.jobs)
	var group sync.WaitGroup
	for range creators {
		group.Go(func() {
			for name := range names {
				if err := createJob(ctx, client, name, w.pods); err != nil {
					failures <- err
				}
			}
		})
	}
	for _, name := range w.jobNames() {
		names <- name
	}
	close(names)
	group.Wait()
	close(failures)
	return <-failures
}

// jobPhases knows the phase of each job, by a watch.
type jobPhases struct {
	lock    sync.Mutex
	phase   map[string]string
	changed chan struct{}
}

func (p *jobPhases) set(name, phase string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.phase[name] = phase
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *jobPhases) notRunning(names []string) ([]string, <-chan struct{}) {
	p.lock.Lock()
	defer p.lock.Unlock()
	var left []string
	for _, name := range names {
		if p.phase[name] != "Running" {
			left = append(left, name)
		}
	}
	return left, p.changed
}

func (p *jobPhases) wait(ctx context.Context, names []string) error {
	limit := time.After(caseLimit)
	for {
		left, changed := p.notRunning(names)
		if len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit:
			return fmt.Errorf("%d of %d jobs don't run after %s, %s among them", len(left), len(names), caseLimit, left[0])
		case <-changed:
		}
	}
}
