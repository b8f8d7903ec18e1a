package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

const fingerprint = "training.coxswain.dev/spec-fingerprint"

// world is what an operator has made of the jobs: kind and name → all that must be the same whoever made it.
type world map[string]string

func (b *bench) look(ctx context.Context, w workload) (world, error) {
	uids, err := b.jobUIDs(ctx)
	if err != nil {
		return nil, err
	}
	seen := world{}
	counts := map[string]int{}
	for _, kind := range []string{"pods", "services", "configmaps", "trainingjobs"} {
		objects, err := b.list(ctx, kind)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			text, err := essence(kind, object, uids)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", kind, object.GetName(), err)
			}
			seen[kind+"/"+object.GetName()] = text
			counts[kind]++
		}
	}
	if err := b.addEvents(ctx, seen); err != nil {
		return nil, err
	}
	jobs := w.jobs + 1 // and the probe
	wanted := map[string]int{"pods": w.jobs*w.pods + probePods, "services": jobs, "configmaps": jobs, "trainingjobs": jobs}
	for kind, count := range wanted {
		if counts[kind] != count {
			return nil, fmt.Errorf("there are %d %s where there should be %d", counts[kind], kind, count)
		}
	}
	return seen, nil
}

func (b *bench) list(ctx context.Context, kind string) ([]unstructured.Unstructured, error) {
	resource := schema.GroupVersionResource{Version: "v1", Resource: kind}
	if kind == trainingJobs.Resource {
		resource = trainingJobs
	}
	list, err := b.dynamic.Resource(resource).Namespace(benchNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (b *bench) jobUIDs(ctx context.Context) (map[string]string, error) {
	jobs, err := b.list(ctx, trainingJobs.Resource)
	uids := map[string]string{}
	for _, job := range jobs {
		uids[job.GetName()] = string(job.GetUID())
	}
	return uids, err
}

// essence is the object without what differs from one creation to the next.
func essence(kind string, object unstructured.Unstructured, uids map[string]string) (string, error) {
	jobUID := uids[object.GetName()]
	if kind != trainingJobs.Resource {
		owners := object.GetOwnerReferences()
		if len(owners) != 1 || string(owners[0].UID) != uids[owners[0].Name] {
			return "", fmt.Errorf("its owner is not its job")
		}
		jobUID = string(owners[0].UID)
		delete(object.Object, "status")
	}
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	switch kind {
	case "pods":
		if object.GetAnnotations()[fingerprint] == "" {
			return "", fmt.Errorf("no annotation %s", fingerprint)
		}
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations", fingerprint)
		unstructured.RemoveNestedField(object.Object, "spec", "nodeName")
	case "configmaps":
		if err := asData(object); err != nil {
			return "", err
		}
	case "trainingjobs":
		dropTimes(object.Object["status"])
	}
	text, err := json.Marshal(object.Object)
	return strings.ReplaceAll(string(text), jobUID, "UID"), err
}

// asData: what the YAML says, not how.
func asData(object unstructured.Unstructured) error {
	text, _, err := unstructured.NestedString(object.Object, "data", "config.yaml")
	if err != nil {
		return err
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return err
	}
	return unstructured.SetNestedField(object.Object, string(data), "data", "config.yaml")
}

func dropTimes(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if strings.HasSuffix(key, "Time") {
				value[key] = "TIME"
			}
			dropTimes(inner)
		}
	case []any:
		for _, inner := range value {
			dropTimes(inner)
		}
	}
}

func (b *bench) addEvents(ctx context.Context, seen world) error {
	events, err := b.client.CoreV1().Events(benchNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	of := map[string][]string{}
	for _, event := range events.Items {
		about := event.InvolvedObject
		if about.Kind != "TrainingJob" {
			return fmt.Errorf("event %s is about a %s", event.Name, about.Kind)
		}
		of[about.Name] = append(of[about.Name], fmt.Sprintf("%s %s %q", event.Type, event.Reason, event.Message))
	}
	for job, lines := range of {
		slices.Sort(lines)
		seen["events/"+job] = strings.Join(lines, "; ")
	}
	return nil
}

// differences says where two worlds aren't the same, at most a few.
func differences(ours, peers world) []string {
	var found []string
	names := map[string]bool{}
	for name := range ours {
		names[name] = true
	}
	for name := range peers {
		names[name] = true
	}
	for name := range names {
		if ours[name] != peers[name] {
			found = append(found, fmt.Sprintf("%s\n  ours: %s\n  peer: %s", name, ours[name], peers[name]))
		}
	}
	slices.Sort(found)
	return found
}
