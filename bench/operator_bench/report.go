package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// results: case → contestant → metric → the values of all rounds.
type results map[string]map[string]measures

func (r results) add(name, user string, more measures) {
	if r[name] == nil {
		r[name] = map[string]measures{}
	}
	if r[name][user] == nil {
		r[name][user] = measures{}
	}
	for metric, values := range more {
		r[name][user][metric] = append(r[name][user][metric], values...)
	}
}

// quantile by the nearest rank.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	at := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

func line(out io.Writer, name, metric string, ours, peers float64) {
	ratio := "-"
	if peers != 0 {
		ratio = fmt.Sprintf("%.2f", ours/peers)
	}
	fmt.Fprintf(out, "%s %s ours=%.3f peer=%.3f ratio=%s\n", name, metric, ours, peers, ratio)
}

// print: quantiles are over the jobs of all rounds; everything else is the median of the rounds.
func (r results) print(out io.Writer, cases []workload) {
	both := func(name, metric string, reduce func([]float64) float64) {
		line(out, name, metric, reduce(r[name]["ours"][metric]), reduce(r[name]["peer"][metric]))
	}
	for _, w := range cases {
		for _, span := range []string{"create_to_all", "create_to_running"} {
			for _, q := range []float64{0.5, 0.99} {
				of := func(user string) float64 { return quantile(r[w.name][user][span+"_s"], q) }
				line(out, w.name, fmt.Sprintf("%s_p%.0f_s", span, q*100), of("ours"), of("peer"))
			}
		}
		for _, metric := range []string{"jobs_per_s", "rss_idle_mib", "rss_mib", "rss_peak_mib", "cpu_s", "requests_per_job"} {
			both(w.name, metric, median)
		}
		for _, metric := range r.verbs(w.name) {
			both(w.name, metric, median)
		}
	}
	starts := func(user string) float64 {
		var all []float64
		for _, w := range cases {
			all = append(all, r[w.name][user]["start_to_first_reconcile_s"]...)
		}
		return median(all)
	}
	line(out, "start", "start_to_first_reconcile_s", starts("ours"), starts("peer"))
}

func (r results) verbs(name string) []string {
	found := map[string]bool{}
	for _, of := range r[name] {
		for metric := range of {
			if strings.HasPrefix(metric, "requests_per_job_") {
				found[metric] = true
			}
		}
	}
	var sorted []string
	for metric := range found {
		sorted = append(sorted, metric)
	}
	slices.Sort(sorted)
	return sorted
}
