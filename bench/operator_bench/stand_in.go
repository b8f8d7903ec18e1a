package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

const (
	nodeCount      = 8
	standInWorkers = 8
)

// startStandIn is scheduler and kubelet for all pods of the bench: each is bound, and runs.
func startStandIn(ctx context.Context, client *kubernetes.Clientset) error {
	for i := range nodeCount {
		if err := addNode(ctx, client, nodeName(i)); err != nil {
			return err
		}
	}
	pods := make(chan *corev1.Pod, 100_000) // more than any case has: the watch is never held up
	source := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", benchNamespace, fields.Everything())
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: source, ObjectType: &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: func(object any) { pods <- object.(*corev1.Pod) }}})
	go informer.RunWithContext(ctx)
	for worker := range standInWorkers {
		go func() {
			for pod := range pods {
				if err := runPod(ctx, client, pod, nodeName(worker%nodeCount)); err != nil && ctx.Err() == nil {
					log.Printf("the stand-in could not run pod %s: %v", pod.Name, err)
				}
			}
		}()
	}
	return nil
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

func addNode(ctx context.Context, client *kubernetes.Clientset, name string) error {
	node, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		Reason: "KubeletReady", LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now()}}
	_, err = client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

func runPod(ctx context.Context, client *kubernetes.Clientset, pod *corev1.Pod, node string) error {
	if pod.Spec.NodeName != "" {
		return nil
	}
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
		Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	if err := client.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	now := metav1.NewTime(time.Now())
	isTrue := func(kind corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now}
	}
	started := true
	patch, err := json.Marshal(map[string]any{"status": corev1.PodStatus{
		Phase:     corev1.PodRunning,
		StartTime: &now,
		PodIP:     "10.0.0.1",
		Conditions: []corev1.PodCondition{isTrue(corev1.PodReadyToStartContainers), isTrue(corev1.PodInitialized),
			isTrue(corev1.ContainersReady), isTrue(corev1.PodReady)},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "trainer", Ready: true, Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}},
	}})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	return err
}
