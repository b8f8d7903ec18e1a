// The peer of coxswain-operator; see package controller.
package main

import (
	"flag"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"coxswain.dev/bench/peers/operator/controller"
	"coxswain.dev/bench/peers/operator/v1alpha1"
)

func main() {
	reconciler := &controller.Reconciler{}
	var qps float64
	var burst int
	var metricsAddress, healthAddress string
	var elect bool
	flag.Float64Var(&qps, "kube-api-qps", 100, "requests to the API server each second, at most")
	flag.IntVar(&burst, "kube-api-burst", 200, "requests at once, after a quiet while")
	flag.IntVar(&reconciler.Workers, "workers", 8, "jobs worked on at a time")
	flag.DurationVar(&reconciler.BatchPeriod, "batch-period", 300*time.Millisecond, "from a change of a child to the pass")
	flag.StringVar(&reconciler.RuntimeImage, "runtime-image", "coxswain-runtime:latest", "of jobs that name none")
	flag.StringVar(&metricsAddress, "metrics-bind-address", ":8080", "0: not served")
	flag.StringVar(&healthAddress, "health-bind-address", ":8081", "0: not served")
	flag.BoolVar(&elect, "leader-elect", true, "work only while holding a lease")
	flag.Parse()
	ctrl.SetLogger(zap.New())

	kubeconfig := config.GetConfigOrDie()
	kubeconfig.QPS, kubeconfig.Burst = float32(qps), burst
	kubeconfig.UserAgent = "coxswain-peer"
	if err := run(kubeconfig, reconciler, metricsAddress, healthAddress, elect); err != nil {
		ctrl.Log.Error(err, "ended")
		os.Exit(1)
	}
}

func run(kubeconfig *rest.Config, reconciler *controller.Reconciler, metricsAddress, healthAddress string, elect bool) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	manager, err := ctrl.NewManager(kubeconfig, ctrl.Options{
		Scheme:                 scheme,
		Cache:                  controller.CacheOptions(),
		Metrics:                server.Options{BindAddress: metricsAddress},
		HealthProbeBindAddress: healthAddress,
		LeaderElection:         elect,
		LeaderElectionID:       "coxswain-peer",
	})
	if err != nil {
		return err
	}
	reconciler.Client = manager.GetClient()
	reconciler.Recorder = manager.GetEventRecorder("coxswain-operator")
	if err := reconciler.SetupWithManager(manager); err != nil {
		return err
	}
	if err := manager.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return err
	}
	if err := manager.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
