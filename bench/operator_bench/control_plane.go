package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Who asks: each has a token of its own, so that the audit log tells them apart.
const driverUser = "driver"

// All users are in system:masters: the bench measures operators, not the API server's fairness between them.
const tokens = "token-of-driver,driver,1,system:masters\n" +
	"token-of-ours,ours,2,system:masters\n" +
	"token-of-peer,peer,3,system:masters\n"

// Every request of the two operators, and of the driver only what starts a clock.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {level: Metadata, users: [ours, peer]}
  - {level: Metadata, users: [driver], verbs: [create], resources: [{group: training.coxswain.dev, resources: [trainingjobs]}]}
  - {level: None}
`

type controlPlane struct {
	folder    string
	auditLog  string
	server    string
	authority string
	processes []*process
}

func startControlPlane(ctx context.Context, bin, folder string) (*controlPlane, error) {
	plane := &controlPlane{folder: folder, auditLog: filepath.Join(folder, "audit.log"),
		authority: filepath.Join(folder, "certificates", "apiserver.crt")}
	files := map[string]string{"tokens.csv": tokens, "audit-policy.yaml": auditPolicy}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	if err := writeServiceAccountKey(filepath.Join(folder, "service-account.key")); err != nil {
		return nil, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	etcd := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	peers := fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	plane.server = fmt.Sprintf("https://127.0.0.1:%d", ports[2])
	if err := plane.start("etcd", filepath.Join(bin, "etcd"),
		"--data-dir", filepath.Join(folder, "etcd"), "--listen-client-urls", etcd, "--advertise-client-urls", etcd,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default="+peers,
		"--unsafe-no-fsync", "--log-level", "warn"); err != nil {
		return nil, err
	}
	in := func(name string) string { return filepath.Join(folder, name) }
	if err := plane.start("kube-apiserver", filepath.Join(bin, "kube-apiserver"),
		"--etcd-servers", etcd, "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(ports[2]),
		"--cert-dir", in("certificates"), "--token-auth-file", in("tokens.csv"),
		"--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.96.0.0/16",
		// There is no controller that makes service accounts.
		"--disable-admission-plugins", "ServiceAccount",
		"--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-signing-key-file", in("service-account.key"), "--service-account-key-file", in("service-account.key"),
		"--audit-policy-file", in("audit-policy.yaml"), "--audit-log-path", plane.auditLog, "--audit-log-maxsize", "4096",
	); err != nil {
		plane.stop()
		return nil, err
	}
	if err := plane.waitUntilReady(ctx); err != nil {
		plane.stop()
		return nil, err
	}
	return plane, nil
}

func (c *controlPlane) start(name, program string, arguments ...string) error {
	p, err := startProcess(c.folder, name, program, arguments...)
	if err == nil {
		c.processes = append(c.processes, p)
	}
	return err
}

func (c *controlPlane) stop() {
	for i := len(c.processes) - 1; i >= 0; i-- {
		c.processes[i].stop()
	}
}

func (c *controlPlane) waitUntilReady(ctx context.Context) error {
	var client *kubernetes.Clientset
	return poll(ctx, 2*time.Minute, "the API server to be ready", func() (bool, error) {
		for _, p := range c.processes {
			if p.hasEnded() {
				return false, p.failure()
			}
		}
		if client == nil { // its certificate comes with its start
			if _, err := os.Stat(c.authority); err != nil {
				return false, nil
			}
			var err error
			if client, err = kubernetes.NewForConfig(c.config(driverUser)); err != nil {
				return false, nil
			}
		}
		return client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
}

func (c *controlPlane) config(user string) *rest.Config {
	return &rest.Config{Host: c.server, BearerToken: "token-of-" + user, UserAgent: user, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.authority}}
}

func (c *controlPlane) kubeconfig(user string) (string, error) {
	path := filepath.Join(c.folder, user+".kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["bench"] = &clientcmdapi.Cluster{Server: c.server, CertificateAuthority: c.authority}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: "token-of-" + user}
	config.Contexts["bench"] = &clientcmdapi.Context{Cluster: "bench", AuthInfo: user}
	config.CurrentContext = "bench"
	return path, clientcmd.WriteToFile(*config, path)
}

func writeServiceAccountKey(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

func freePorts(count int) ([]int, error) {
	var ports []int
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func poll(ctx context.Context, limit time.Duration, what string, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		if done, err := is(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s in vain", limit, what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
