package main

import (
	"bufio"
	"encoding/json"
	"os"
	"time"
)

// request is one request to the API server, as its audit log has it.
type request struct {
	ID         string    `json:"auditID"`
	Stage      string    `json:"stage"`
	Verb       string    `json:"verb"`
	Received   time.Time `json:"requestReceivedTimestamp"`
	StageTime  time.Time `json:"stageTimestamp"`
	User       struct{ Username string }
	ObjectRef  struct{ Resource, Subresource, Name string }
	Response   struct{ Code int } `json:"responseStatus"`
	RequestURI string             `json:"requestURI"`
}

func auditSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// requestsSince reads what was logged behind offset, each request once.
func requestsSince(path string, offset int64) ([]request, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(offset, 0); err != nil {
		return nil, err
	}
	var all []request
	seen := map[string]bool{} // a watch has a line when it begins and one when it ends
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var one request
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			break // the last line, not yet whole
		}
		if !seen[one.ID] {
			all = append(all, one)
		}
		seen[one.ID] = true
	}
	return all, lines.Err()
}

func (r *request) succeeded() bool { return r.Response.Code >= 200 && r.Response.Code < 300 }

// spans are, for each job that the driver created, the seconds from that request to the answer to the
// operator's last creation of a pod of it, and to its last status.
type spans struct{ toAll, toRunning []float64 }

func spansOf(all []request, user string, jobs []string, pods int) (spans, time.Duration) {
	created, lastPod, lastStatus := map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
	owner := map[string]string{}
	for _, job := range jobs {
		for rank := range pods {
			owner[podOf(job, rank)] = job
		}
	}
	for _, one := range all {
		switch {
		case !one.succeeded():
		case one.User.Username == driverUser && one.Verb == "create":
			created[one.ObjectRef.Name] = one.Received
		case one.User.Username != user:
		case one.ObjectRef.Resource == "pods" && one.Verb == "create":
			job := owner[one.ObjectRef.Name]
			lastPod[job] = later(lastPod[job], one.StageTime)
		case one.ObjectRef.Resource == "trainingjobs" && one.ObjectRef.Subresource == "status":
			lastStatus[one.ObjectRef.Name] = later(lastStatus[one.ObjectRef.Name], one.StageTime)
		}
	}
	var result spans
	first, last := time.Time{}, time.Time{}
	for _, job := range jobs {
		result.toAll = append(result.toAll, lastPod[job].Sub(created[job]).Seconds())
		result.toRunning = append(result.toRunning, lastStatus[job].Sub(created[job]).Seconds())
		if first.IsZero() || created[job].Before(first) {
			first = created[job]
		}
		last = later(last, lastPod[job])
	}
	return result, last.Sub(first)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// countByVerb counts the operator's own requests received between two moments.
func countByVerb(all []request, user string, from, to time.Time) map[string]int {
	counts := map[string]int{}
	for _, one := range all {
		if one.User.Username == user && !one.Received.Before(from) && !one.Received.After(to) {
			counts[one.Verb]++
		}
	}
	return counts
}

// firstWrite is when the operator's first request that changes something came.
func firstWrite(all []request, user string) (time.Time, bool) {
	first := time.Time{}
	for _, one := range all {
		writes := one.Verb == "create" || one.Verb == "update" || one.Verb == "patch"
		ofWork := one.ObjectRef.Resource == "trainingjobs" || one.ObjectRef.Resource == "services" || one.ObjectRef.Resource == "pods"
		if one.User.Username == user && writes && ofWork && (first.IsZero() || one.Received.Before(first)) {
			first = one.Received
		}
	}
	return first, !first.IsZero()
}
