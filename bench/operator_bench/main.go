// Measures coxswain-operator beside the operator of bench/peers/operator, on one API server in one run. etcd and
// kube-apiserver are real; one stand-in is scheduler and kubelet for both. See scripts/bench.sh operator.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

type options struct {
	bin, crd, ours, peer string
	cases                string
	rounds               int
	small, keep          bool
	peerBatch            time.Duration
}

func main() {
	log.SetFlags(log.Ltime)
	var o options
	flag.StringVar(&o.bin, "control-plane", "", "folder of etcd and kube-apiserver")
	flag.StringVar(&o.crd, "crd", "crds/trainingjob.yaml", "the TrainingJob's definition")
	flag.StringVar(&o.ours, "ours", "", "the program coxswain-operator")
	flag.StringVar(&o.peer, "peer", "", "the peer's program")
	flag.StringVar(&o.cases, "cases", "sequential,burst,wide", "which, by commas")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each case is run with each operator")
	flag.BoolVar(&o.small, "small", false, "few jobs: to see that it works")
	flag.BoolVar(&o.keep, "keep", false, "leave logs behind and say where")
	flag.DurationVar(&o.peerBatch, "peer-batch-period", 300*time.Millisecond, "the peer's --batch-period; ours has 300 ms")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	cases, err := chosen(o)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "operator-bench-")
	if err != nil {
		return err
	}
	if o.keep {
		log.Printf("logs are in %s", folder)
	} else {
		defer os.RemoveAll(folder)
	}
	plane, err := startControlPlane(ctx, o.bin, folder)
	if err != nil {
		return err
	}
	defer plane.stop()
	b, err := prepare(ctx, plane, o.crd)
	if err != nil {
		return err
	}
	contestants, err := contestantsOf(plane, o)
	if err != nil {
		return err
	}
	all, err := b.rounds(ctx, cases, contestants, o.rounds)
	if err != nil {
		return err
	}
	all.print(os.Stdout, cases)
	return nil
}

func chosen(o options) ([]workload, error) {
	all := workloads(o.small)
	var cases []workload
	for name := range strings.SplitSeq(o.cases, ",") {
		at := slices.IndexFunc(all, func(w workload) bool { return w.name == name })
		if at < 0 {
			return nil, fmt.Errorf("--cases: there is no case %q; there are sequential, burst, wide", name)
		}
		cases = append(cases, all[at])
	}
	return cases, nil
}

// Both get the same limits, which neither meets, and work without an election.
func contestantsOf(plane *controlPlane, o options) ([]contestant, error) {
	shared := []string{"--kube-api-qps=2000", "--kube-api-burst=4000", "--workers=8", "--leader-elect=false",
		"--metrics-bind-address=0", "--health-bind-address=0", "--runtime-image=coxswain-runtime:bench"}
	list := []contestant{{user: "ours", program: o.ours},
		{user: "peer", program: o.peer, arguments: []string{"--batch-period=" + o.peerBatch.String()}}}
	for i := range list {
		kubeconfig, err := plane.kubeconfig(list[i].user)
		if err != nil {
			return nil, err
		}
		list[i].arguments = slices.Concat(list[i].arguments, shared, []string{"--kubeconfig=" + kubeconfig})
	}
	return list, nil
}

func prepare(ctx context.Context, plane *controlPlane, crdFile string) (*bench, error) {
	config := plane.config(driverUser)
	b := &bench{plane: plane}
	var err error
	if b.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	core := *config
	core.ContentType, core.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	if b.client, err = kubernetes.NewForConfig(&core); err != nil {
		return nil, err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: benchNamespace}}
	if _, err = b.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	extensions, err := extensionsclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if err := establish(ctx, extensions, crdFile); err != nil {
		return nil, err
	}
	if b.phases, err = watchPhases(ctx, b.dynamic); err != nil {
		return nil, err
	}
	return b, startStandIn(ctx, b.client)
}

func establish(ctx context.Context, client extensionsclient.Interface, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	crd := &apiextensions.CustomResourceDefinition{}
	if err := yaml.Unmarshal(text, crd); err != nil {
		return err
	}
	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	if _, err := definitions.Create(ctx, crd, metav1.CreateOptions{}); err != nil {
		return err
	}
	return poll(ctx, time.Minute, "the TrainingJob to be established", func() (bool, error) {
		now, err := definitions.Get(ctx, crd.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(now.Status.Conditions, func(c apiextensions.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensions.Established && c.Status == apiextensions.ConditionTrue
		}), nil
	})
}

// rounds alternates: each case with both, and in every other round the peer first.
func (b *bench) rounds(ctx context.Context, cases []workload, contestants []contestant, rounds int) (results, error) {
	all := results{}
	for round := range rounds {
		for _, w := range cases {
			worlds := map[string]world{}
			for _, who := range contestants {
				log.Printf("round %d of %d: %s, %s", round+1, rounds, w.name, who.user)
				measured, seen, err := b.trial(ctx, w, who)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", w.name, who.user, err)
				}
				if err := b.clean(ctx); err != nil {
					return nil, fmt.Errorf("cleaning up after %s, %s: %w", w.name, who.user, err)
				}
				all.add(w.name, who.user, measured)
				worlds[who.user] = seen
			}
			if found := differences(worlds["ours"], worlds["peer"]); len(found) > 0 {
				return nil, fmt.Errorf("%s: the two did not do the same work, there are %d differences; the first:\n%s",
					w.name, len(found), found[0])
			}
		}
		slices.Reverse(contestants)
	}
	return all, nil
}
